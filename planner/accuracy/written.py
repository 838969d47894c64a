"""Judged runs as CSV text: all columns that were read, and the predictions beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.accuracy.judged import Judged
from planner.units import GIB

ADDED = ("predicted_step_time_s", "predicted_peak_memory_gib", "predicted_fits", "profile", "not_judged_because")
"""Columns behind those that were read; those of an earlier answer are replaced."""


def predictions_csv(judged: Sequence[Judged]) -> str:
    """Return one row for each run, in their order; files of unlike columns get all of them."""
    columns = dict.fromkeys(column for one in judged for column in one.run.row if column not in ADDED)
    lines = [_line([*columns, *ADDED])]
    lines += [_line([*(one.run.row.get(column, "") for column in columns), *_added(one)]) for one in judged]
    return "".join(lines)


def _added(one: Judged) -> list[str]:
    return [
        "" if one.step_time is None else f"{one.step_time:.6g}",
        "" if one.peak_memory is None else f"{one.peak_memory / GIB:.6g}",
        {None: "", False: "0", True: "1"}[one.fits],
        one.profile,
        one.reason,
    ]


def _line(cells: Iterable[str]) -> str:
    """Return a record; the standard library's writer leaves a lone carriage return without quotes."""
    return ",".join(_quoted(cell) if set(cell) & set(',"\r\n') else cell for cell in cells) + "\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'
