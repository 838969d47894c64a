"""JSON text to a document: read by the fast reader, and again as YAML where a message needs its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from planner.errors import Problem, SpecError
from planner.loader.document import Document, Path, check_shape, too_deep
from planner.loader.words import finite, integer
from planner.loader.yaml_text import read_yaml


def read_json(text: str, origin: str, max_values: int) -> Document | None:
    """Read `text` with the fast reader of JSON; None if it may be YAML instead."""
    trouble: list[str] = []

    def number(read: Callable[[str], Any]) -> Callable[[str], Any]:
        def checked(word: str) -> Any:
            try:
                return read(word)
            except ValueError as error:
                trouble.append(str(error))
                return word

        return checked

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) < len(items):
            trouble.append("has a duplicate key; remove one of the two")
        return value

    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=number(integer),
            parse_float=number(finite),
            parse_constant=number(finite),
        )
    except RecursionError:
        raise SpecError.of(origin, too_deep()) from None
    except json.JSONDecodeError as error:
        if not origin.endswith(".json"):
            return _yaml_or_none(text, origin, error)
        raise SpecError.of(
            origin if not text.strip() else f"{origin}:{error.lineno}", _json_message(text, error)
        ) from None
    check_shape(value, origin, max_values)
    _refuse_halves(text, value, origin)
    lines = cache(lambda: _lines_of_json(text, origin))
    if not trouble:
        return Document(value=value, origin=origin, lines=lines)
    placed = _yaml_problems(text, origin) or tuple(Problem(origin, message) for message in trouble)
    return Document(value=value, origin=origin, lines=lines, problems=placed)


def _refuse_halves(text: str, value: Any, origin: str) -> None:
    """Refuse escapes that write half of a character, which no output could show."""
    if "\\ud" not in text.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "has half of a character (\\ud800 to \\udfff alone); write the character itself"
        raise SpecError.of(origin, message) from None


def _json_message(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return 'is empty; write keys and values such as `{"name": "my-cluster"}`'
    if error.pos >= len(text.rstrip()):
        return "is not valid JSON: it ends before its brackets are closed; was it cut short?"
    return (
        f"is not valid JSON: {error.msg.lower()} at column {error.colno}; check commas, quotes and brackets before it"
    )


def _yaml_or_none(text: str, origin: str, error: json.JSONDecodeError) -> Document | None:
    """Leave text that begins like JSON to the YAML reader, but if neither can read it, report the JSON error."""
    try:
        return read_yaml(text, origin)
    except SpecError:
        if re.match(r'\s*\{\s*["}]', text):
            raise SpecError.of(f"{origin}:{error.lineno}", _json_message(text, error)) from None
        raise


def _yaml_problems(text: str, origin: str) -> tuple[Problem, ...]:
    try:
        return read_yaml(text, origin).problems
    except SpecError:
        return ()


def _lines_of_json(text: str, origin: str) -> Mapping[Path, int]:
    """Find lines by reading the JSON text again as YAML, which is slow and therefore done only for messages."""
    try:
        return read_yaml(text, origin).lines()
    except SpecError:
        return {}
