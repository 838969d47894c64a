"""A value with the places of its parts, and the limits of what is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import Problem, SpecError

Path = tuple[str | int, ...]
"""Keys and indices from the root of a document to a value."""

MAX_BYTES = 4 * 2**20
"""[bytes] of text that are read; no specification comes near."""
MAX_DEPTH = 64
"""Levels of nesting that are read."""
MAX_VALUES = 200_000
"""Values that are read, those that aliases repeat counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A plain value (dict, list, str, int, float, bool, None), and where each part of it stands in its text."""

    value: Any
    origin: str
    """Name of the file, for messages."""
    problems: tuple[Problem, ...] = ()
    """What is wrong although a value could be read, such as a duplicate key."""
    lines: Callable[[], Mapping[Path, int]] = dict
    """The line of every part, counted from 1; found only when it is asked for."""
    options: Mapping[Path, str] = field(default_factory=dict)
    """Options of the command line that parts of the value come from, instead of from the text."""

    def place(self, path: Path = ()) -> str:
        """Return where `path` stands, as in ``cluster.yaml:12 groups[0].device``; what is missing, at its parent."""
        option = next((self.options[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.options), None)
        if option is not None:
            return option
        lines = self.lines()
        at = next((lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in lines), None)
        origin = self.origin if at is None else f"{self.origin}:{at}"
        return f"{origin} {dotted(path)}" if path else origin

    def problem(self, path: Path, message: str) -> Problem:
        """Return a problem of the value at `path`."""
        return Problem(self.place(path), message)


def dotted(path: Path) -> str:
    """Return `path` as text, as in ``groups[0].device``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def check_shape(value: Any, origin: str, max_values: int) -> None:
    """Refuse values that are nested too deeply or too many."""
    level, depth, total = [value], 0, 1
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise SpecError.of(origin, too_deep())
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = [value for items in inner for value in items]
        total += len(level)
        if total > max_values:
            raise SpecError.of(origin, too_many(max_values))


def too_deep() -> str:
    """Return the message about text nested too deeply."""
    return f"is nested more than {MAX_DEPTH} levels deep; no specification needs that"


def too_many(max_values: int = MAX_VALUES) -> str:
    """Return the message about too many values."""
    return f"holds more than {max_values:,} values, aliases included; no specification needs that"
