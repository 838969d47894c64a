"""CSV text to measured runs, all problems of all files with their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from planner.accuracy.run import Run
from planner.accuracy.table import read_table
from planner.errors import Problem, SpecError
from planner.loader.words import finite

__all__ = ["Run", "read_runs"]

PROBLEMS_MAX = 20
"""Problems that are told in full; the rest is counted."""
NEEDED = ("layers", "hidden", "heads", "seq", "gpu", "gpus", "gbs")
"""Columns without which nothing can be predicted."""
MEASURED = ("iter_time_s", "tokens_per_s_per_gpu", "mem_gib_per_gpu", "oom")
"""Columns of which one at least is needed."""
MAY_BE_ZERO = frozenset({"zero", "sp", "moe_experts", "moe_topk", "moe_ffn"})
"""Numbers that mean something at 0; all others are more than 0 or empty."""
MOST = {"zero": 3, "sp": 1, "mfu": 1, "layers": 100_000, "grad_bytes": 16}
"""Column -> the largest number that it may hold."""
LARGEST = 1e12
"""The same of other columns."""
SMALLEST = 1e-9
"""Of those that are not 0."""
OUTCOMES = ("", "0", "1", "fail")
"""What ``oom`` may say."""


def read_runs(paths: Sequence[str]) -> tuple[Run, ...]:
    """Return the runs of CSV files in their order; ``-`` is standard input.

    Raises:
        SpecError: with the problems of all files.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    for path in paths:
        found, wrong = _runs_of(path)
        runs += found
        problems += wrong
    if problems:
        hidden = len(problems) - PROBLEMS_MAX
        more = [Problem("", f"and {hidden:,} more of such problems")] if hidden > 0 else []
        raise SpecError([*problems[:PROBLEMS_MAX], *more])
    return tuple(runs)


def _runs_of(path: str) -> tuple[list[Run], list[Problem]]:
    """Return the runs of one file and what is wrong with it."""
    try:
        table = read_table(path)
    except SpecError as error:
        return [], list(error.problems)
    missing = _missing(table.columns)
    if missing:
        return [], [Problem(f"{table.origin}:{table.line}", message) for message in missing]
    runs: list[Run] = []
    problems: list[Problem] = []
    for line, row in table.rows:
        values, wrong = _values(row)
        problems += [Problem(f"{table.origin}:{line} {column}", message) for column, message in wrong]
        if not wrong:
            runs.append(Run(place=f"{table.origin}, line {line}", row=row, **values))
    return runs, problems


def _missing(columns: Sequence[str]) -> list[str]:
    """Return what is to be said of the columns that a file lacks."""
    lacking = [column for column in NEEDED if column not in columns]
    messages = []
    if lacking:
        messages.append(f"lacks the columns {', '.join(lacking)}; add them, a cell may be empty")
    if not set(MEASURED) & set(columns):
        messages.append(f"holds nothing measured; add one of the columns {', '.join(MEASURED)}")
    return messages


def _values(row: Mapping[str, str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return field -> value of a row, and (column, what is wrong); a column that is missing is empty."""
    values: dict[str, Any] = {}
    wrong = []
    for name in _READERS:
        cell = "".join(letter for letter in row.get(name, "") if letter.isprintable()).strip()
        values[name], message = _value(name, cell)
        wrong += [(name, message)] if message else []
    return values, wrong


def _value(name: str, text: str) -> tuple[Any, str]:
    """Return the value of a cell and what is wrong with it."""
    try:
        return _READERS[name](name, text), ""
    except ValueError as error:
        return None, str(error)


def _number(name: str, text: str) -> float | None:
    """Return the number in a cell; ValueError says what would be right."""
    if not text:
        return None
    try:
        number = finite(text)
    except ValueError:
        raise ValueError(f"should be a number such as 8, 4.0 or 1e3, or empty, not {text[:40]!r}") from None
    if number < 0 or (number == 0 and name not in MAY_BE_ZERO):
        least = "at least 0" if name in MAY_BE_ZERO else "more than 0"
        raise ValueError(f"should be {least}, or empty where it is not known, not {text[:40]}")
    most = MOST.get(name, LARGEST)
    if number > most:
        raise ValueError(f"should be at most {most:g}, not {text[:40]}")
    if 0 < number < SMALLEST:
        raise ValueError(f"should be at least {SMALLEST:g}, not {text[:40]}")
    return number


def _whole(name: str, text: str) -> int | None:
    number = _number(name, text)
    if number is not None and not number.is_integer():
        raise ValueError(f"should be a whole number, or empty, not {text[:40]}")
    return None if number is None else int(number)


def _text(name: str, text: str) -> str:
    if name == "precision":
        return text.lower()
    if name != "oom":
        return text
    plain = {"0.0": "0", "1.0": "1"}.get(text, text)
    if plain not in OUTCOMES:
        raise ValueError(f"should be 0 (ran), 1 (out of memory), fail, or empty, not {text[:40]!r}")
    return plain


# Annotations are text here, since they are not evaluated.
_OF_TYPE: Mapping[Any, Callable[[str, str], Any]] = {"str": _text, "int | None": _whole, "float | None": _number}
_READERS = {field.name: _OF_TYPE[field.type] for field in fields(Run) if field.name not in {"place", "row"}}
"""Field of a run -> what reads its cell."""
