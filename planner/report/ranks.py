"""How the ranks of a plan are counted and where they run, in a line or two."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from planner.report.figures import percent
from planner.report.layout import WIDTH, joined, labelled

if TYPE_CHECKING:
    from planner.placement import Placement, Rank

SHOWN = 4
"""Runs of ranks that are named in a line or two."""
LITTLE = 0.001
"""[-] of the links' time below which a gain is not worth a word."""


def rank_lines(placed: Placement, width: int = WIDTH, most: int = SHOWN) -> list[str]:
    """Return the order of the ranks, on which devices they are in at most `most` runs, and what the placement gains."""
    axes = [axis for axis in placed.order.split("-") if axis != "cp" or any(rank.cp_rank for rank in placed.ranks)]
    order = ", then ".join([f"{axes[0]} innermost", *axes[1:]])
    runs = min(_runs(placed.ranks, "group"), _runs(placed.ranks, "node"), key=len)
    where = ", ".join(joined(run) for run in runs[:most]) + (", ..." if len(runs) > most else "")
    gain = 1 - placed.weight / placed.assumed_weight if placed.assumed_weight else 0.0
    gains = f"; links are busy {percent(gain)} less than stage by stage" if gain > LITTLE else ""
    return labelled("ranks", f"{order}: {where}{gains}", width)


def _runs(ranks: Sequence[Rank], place: str) -> list[str]:
    """Return the runs of ranks in one place, a group or a node."""
    found = []
    for name, run in groupby(ranks, key=attrgetter(place)):
        numbers = [rank.rank for rank in run]
        first, last = numbers[0], numbers[-1]
        found.append(f"{first}-{last} on {name}" if last > first else f"{first} on {name}")
    return found
