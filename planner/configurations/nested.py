"""Configurations of nested blocks (JSON, YAML): flattened to dotted keys, and held against tables of the known ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.domain.configuration import ERROR, Configuration, Finding, Setting, Spot
from planner.loader import Document
from planner.specs.problems import nearest, shown

Kinds = Mapping[str, str]
"""Kind of value -> the keys that have it, with blanks between.

Kinds: ``bool``, ``int``, ``number``, ``text``, ``list``, ``block``, ``any``, or the choices as ``none|cpu|nvme``.
"""

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "t", "1"), True),
    **dict.fromkeys(("false", "no", "off", "n", "f", "0"), False),
}
_WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "number": "a number",
    "text": "text",
    "list": "a list",
    "block": "a block of keys",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The keys that a block may have."""

    kinds: Mapping[str, str]
    """Key -> kind of its value."""
    strict: bool
    """Whether the framework refuses other keys; else it ignores them without a word."""


def table(kinds: Kinds, *, strict: bool) -> Table:
    """Return the table that `kinds` writes."""
    return Table(kinds={key: kind for kind, keys in kinds.items() for key in keys.split()}, strict=strict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A key that its block does not know."""

    key: str
    """Dotted."""
    hint: str
    """``; did you mean X?``, or what else is known."""
    near: bool
    """Whether a known key is so near that it must be meant."""
    strict: bool


def flat(document: Document, tables: Mapping[str, Table]) -> dict[str, Setting]:
    """Return every key of a document by its dotted path, blocks too; values as their kind has them.

    Args:
        document: a mapping.
        tables: block -> the keys that are known of it, the outermost as ``""``.

    """
    lines = document.lines()
    found: dict[str, Setting] = {}

    def walk(value: Mapping[str, Any], path: tuple[str, ...]) -> None:
        known = tables.get(".".join(path))
        for key, inner in value.items():
            name = ".".join((*path, key))
            spot = Spot(document.origin, lines.get((*path, key), 0))
            kind = known.kinds.get(key, "any") if known else "any"
            found[name] = Setting(name=name, value=canonical(kind, inner), spot=spot)
            if isinstance(inner, dict):
                walk(inner, (*path, key))

    walk(document.value, ())
    return found


def canonical(kind: str, value: Any) -> Any:
    """Return `value` as its kind has it where frameworks take it leniently: 5e8 and ``"2"`` as whole numbers."""
    if kind == "bool":
        return _WORDS.get(str(value).lower(), value) if isinstance(value, (str, int)) else value
    if kind in {"int", "number"} and isinstance(value, str):
        value = _number(value, whole=kind == "int")
    if kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    if "|" in kind and not isinstance(value, bool):
        same = {word.lower(): word for word in kind.split("|")}
        word = same.get(str(value).lower())
        return value if word is None else int(word) if word.isdigit() else word
    return value


def _number(text: str, *, whole: bool) -> int | float | str:
    if re.fullmatch(r"\s*[-+]?[0-9]{1,15}\s*", text):
        return int(text)
    if whole:
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def fits(kind: str, value: Any) -> bool:
    """Return whether a canonical value is of its kind; nothing at all is of every kind."""
    if value is None or kind == "any":
        return True
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {
        "bool": isinstance(value, bool),
        "int": is_number and isinstance(value, int),
        "number": is_number,
        "text": isinstance(value, str),
        "list": isinstance(value, list),
        "block": isinstance(value, dict),
    }.get(kind, str(value) in kind.split("|") and not isinstance(value, bool))


def unknown(configuration: Configuration, tables: Mapping[str, Table]) -> Iterator[Unknown]:
    """Yield the written keys that the table of their block does not have."""
    for key in configuration.settings:
        block, _, name = key.rpartition(".")
        held = tables.get(block)
        # What begins with an underscore is a comment by habit: JSON has no others.
        if held and name not in held.kinds and not name.startswith("_"):
            hint = nearest(name, held.kinds)
            yield Unknown(key=key, hint=hint, near=hint.startswith("; did you mean"), strict=held.strict)


def misfits(
    configuration: Configuration, tables: Mapping[str, Table], words: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Yield (key, what its value should be) of values that are not of their kind, nor one of `words`."""
    for key, setting in configuration.settings.items():
        block, _, name = key.rpartition(".")
        kind = tables[block].kinds.get(name, "any") if block in tables else "any"
        is_word = isinstance(setting.value, str) and setting.value in words
        if not fits(kind, setting.value) and not is_word:
            wanted = _WANTED.get(kind) or " or ".join(kind.split("|"))
            yield key, f"{key} should be {wanted}, not {shown(setting.value)}"


def text_findings(document: Document, code: str) -> tuple[Finding, ...]:
    """Return what was wrong with the text of a document although it could be read, such as duplicate keys."""
    return tuple(
        Finding(code=code, severity=ERROR, spot=_spot(document, one.place), key=_key(one.place), message=one.message)
        for one in document.problems
    )


def _spot(document: Document, place: str) -> Spot:
    found = re.match(r":(\d+)", place.removeprefix(document.origin))
    return Spot(document.origin, int(found[1]) if found else 0)


def _key(place: str) -> str:
    """Return the dotted key at the end of ``file:line key``."""
    return place.rpartition(" ")[2] if " " in place else ""
