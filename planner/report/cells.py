"""A stretch of time in cells: what is drawn of a stage, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from planner.report.looks import Look
from planner.report.span import Segment
from planner.simulate.timeline import EXCHANGE, OPTIMIZER, OVERHEAD
from planner.units import Seconds

OTHER = {EXCHANGE: "=", OPTIMIZER: "#", OVERHEAD: "+"}
"""What stands for what comes after the passes."""
LEAST = 1e-9
"""[-] share of a cell that is rounding only."""


class Stretch(NamedTuple):
    """Something that a stage does for a while."""

    start: float
    """[s] from the beginning of the step."""
    end: float
    """[s]"""
    look: Look


def lengths(stretches: Iterable[Stretch], part: Segment) -> list[dict[Look, float]]:
    """Return how long [s] each look lasts in each cell."""
    found: list[dict[Look, float]] = [{} for _ in range(part.num_cells)]
    for start, end, look in stretches:
        if end <= part.start or start >= part.end:
            continue
        first = max(0, int((start - part.start) / part.cell))
        last = min(part.num_cells - 1, int((end - part.start) / part.cell))
        for cell in range(first, last + 1):
            begin = part.start + cell * part.cell
            overlap = min(end, begin + part.cell) - max(start, begin)
            if overlap > 0:
                found[cell][look] = found[cell].get(look, 0.0) + overlap
    return found


def sampled(cells: Iterable[Mapping[Look, float]], cell: Seconds, rest: Look) -> Iterator[Look]:
    """Yield one look for each cell, so that each look has as many cells as is its share of the time.

    A cell shows something that is in it: what has lasted longest in the cells so far without being shown, as colours
    of a picture are dithered. So pauses shorter than a cell add up to one that shows a pause.

    Args:
        cells: how long [s] each look lasts in each cell; they do not overlap.
        cell: [s] of one.
        rest: what fills the rest of a cell.
    """
    owed: dict[Look, float] = {}
    for found in cells:
        shares = {look: length / cell for look, length in found.items()}
        shares[rest] = 1.0 - sum(shares.values())
        for look, share in shares.items():
            owed[look] = owed.get(look, 0.0) + share
        shown = max((look for look, share in shares.items() if share > LEAST), key=lambda look: owed[look])
        owed[shown] -= 1.0
        yield shown
