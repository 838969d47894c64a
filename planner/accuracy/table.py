"""CSV text to rows with the lines they stand on."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.errors import Problem, SpecError
from planner.specs.files import read_text

MAX_BYTES = 64 * 2**20
"""[bytes] of a file that are read: some 60,000 runs."""
REMEDY = "write comma-separated values, quotes inside quotes doubled"


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file."""

    origin: str
    """Name of the file, for messages."""
    line: int
    """Of the header, from 1."""
    columns: tuple[str, ...]
    rows: tuple[tuple[int, Mapping[str, str]], ...]
    """First line and cells of each row."""


def read_table(source: str) -> Table:
    """Return what a CSV file holds; blank lines are skipped.

    Raises:
        SpecError: it cannot be read, is no table, or has rows that are longer or shorter than its header.
    """
    text, origin = read_text(source, MAX_BYTES)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise SpecError.of(f"{origin}:{line}", f"is no text (a zero byte); {REMEDY}")
    records = _records(text, origin)
    if not records:
        raise SpecError.of(origin, "is empty; write a header and one row a run")
    (line, header), *body = records
    columns = tuple(name.strip() for name in header)
    problems = [Problem(f"{origin}:{line}", message) for message in _wrong_header(columns)]
    if problems:
        raise SpecError(problems)
    if not body:
        raise SpecError.of(origin, "has a header and no rows; write one row a run")
    problems = [
        Problem(f"{origin}:{at}", f"has {len(cells)} cells where the header has {len(columns)}; {REMEDY}")
        for at, cells in body
        if len(cells) != len(columns)
    ]
    if problems:
        raise SpecError(problems)
    return Table(origin, line, columns, tuple((at, dict(zip(columns, cells, strict=True))) for at, cells in body))


def _records(text: str, origin: str) -> list[tuple[int, list[str]]]:
    """Return the records with the line on which each starts."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records = []
    start = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise SpecError.of(f"{origin}:{start}", f"is broken CSV ({error}); {REMEDY}") from None
    return records


def _wrong_header(columns: Sequence[str]) -> list[str]:
    """Return what is wrong with a header."""
    if len(columns) == 1 and (found := next((mark for mark in ";\t|" if mark in columns[0]), None)):
        return [f"is separated by {found!r}; {REMEDY}"]
    messages = [f"column {at} has no name; name or remove it" for at, name in enumerate(columns, 1) if not name]
    twice = dict.fromkeys(name for name in columns if name and columns.count(name) > 1)
    return messages + [f"column {name} stands there twice; keep one" for name in twice]
