"""Which stretches of a step a row of characters shows: all of it, or its beginning and its end."""

from __future__ import annotations

from dataclasses import dataclass

from planner.report.figures import seconds
from planner.simulate import Timeline

GAP = 2
"""[columns] that stand for what is left out."""
WHOLE = 0.7
"""[-] share of the step from which on nothing is left out."""
WIDE = 3
"""[columns] that the shortest pass may take where there is room."""
MARGIN = 1.1
"""[-] of the time that filling and draining the pipeline take, that is shown of both."""
TICK = 16
"""[columns] between two times on the axis."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of columns."""

    start: float
    """[s]"""
    end: float
    num_cells: int
    is_cut: bool = False
    """Whether it stands for what is left out."""

    @property
    def cell(self) -> float:
        """[s] of one column."""
        return (self.end - self.start) / self.num_cells

    def ticks(self) -> dict[int, str]:
        """Return column -> time."""
        if self.is_cut:
            return {}
        return {
            cell: seconds(self.start + cell * self.cell) if self.start + cell > 0 else "0"
            for cell in range(0, self.num_cells, TICK)
            if self.num_cells - cell >= TICK // 2
        }


def segments(found: Timeline, cells: int) -> list[Segment]:
    """Return what `cells` columns show: the filling and the draining of the pipeline, if most of the step is neither.

    Filling lasts until every stage has gone backward once; draining begins when the first stage has nothing more to
    take forward.
    """
    ahead = [[one for one in passes if one.name == "F"] for passes in found.passes]
    behind = [[one for one in passes if one.name != "F"] for passes in found.passes]
    fill = MARGIN * max(passes[0].end for passes in behind)
    drain = MARGIN * (found.step_time - min(passes[-1].start for passes in ahead))
    shortest = min(one.end - one.start for passes in found.passes for one in passes)
    room = cells - GAP
    needed = max(fill + drain, room * shortest / WIDE)
    if needed >= WHOLE * found.step_time:
        return [Segment(0.0, found.step_time, cells)]
    first = min(max(1, round(room * fill / (fill + drain))), room - 1)
    unit = needed / room
    left, right = first * unit, found.step_time - (room - first) * unit
    return [
        Segment(0.0, left, first),
        Segment(left, right, GAP, is_cut=True),
        Segment(right, found.step_time, room - first),
    ]
