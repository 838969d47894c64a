"""The exact step of one kind of pipeline: its layers are spread by the same program as those of equal replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Positions
from planner.candidates.unlike import UnlikeSpace
from planner.program.bounds import Bounder
from planner.program.evaluation import evaluate, slowest
from planner.program.improve import improve
from planner.program.subproblem import Assignment, Subproblem, build_subproblem

EFFORT = 4.0
"""[-] work that CP-SAT may spend on one kind, in its own deterministic measure."""


@dataclass(frozen=True)
class Priced:
    """A kind of pipeline with its layers spread."""

    sub: Subproblem
    """Without its exchange."""
    assignment: Assignment
    passes: int
    """[ns] until the last pass ends."""
    bound: float
    """[ns] below which the passes of no spread of the layers end."""
    sync: int
    """[ns] of the longest exchange of a stage."""


def price(space: UnlikeSpace, family: Family, num_stages: int, sync_high: float, gap: float) -> Priced | None:
    """Return the spread of the layers with the shortest passes, within `gap` of it; None if they do not fit.

    Args:
        space: what may be chosen.
        family: how the kind is priced.
        num_stages: of a pipeline.
        sync_high: [ns] that no stage's exchange may exceed.
        gap: [-]
    """
    table = space.space.table(family, stage_counts=[num_stages])
    made = build_subproblem(space.space, table, num_stages)
    sync, free = made.positions.sync, np.full_like(made.capacity, np.iinfo(np.int64).max // 4)
    positions = _without_exchange(made.positions, sync <= sync_high)
    sub = replace(made, positions=positions, capacity=free, least=np.zeros_like(made.least), slots=())
    found = _spread(sub, gap)
    if found is None:
        return None
    assignment, bound = found
    longest = sync[np.arange(num_stages), list(assignment.choices), np.array(assignment.layers) - 1].max()
    return Priced(sub, assignment, evaluate(sub, assignment), bound, int(longest))


def _without_exchange(positions: Positions, allowed: NDArray[np.bool_]) -> Positions:
    """Return the positions with no exchange, and no column that is not allowed."""
    changed = replace(positions)
    for name in ("time", "forward", "backward"):
        changed.__dict__[name] = np.where(allowed, getattr(positions, name), NEVER)
    changed.__dict__["sync"] = np.zeros_like(positions.sync)
    return changed


def _spread(sub: Subproblem, gap: float) -> tuple[Assignment, float] | None:
    """Return the best spread of the layers, and a bound [ns] on all."""
    if sub.num_stages == 1:
        whole = Assignment((0,), (sub.num_layers,))
        objective = evaluate(sub, whole)
        return (whole, float(objective)) if objective < NEVER else None
    cutoff = float(slowest(sub)) + 1
    known = Bounder(sub, np.zeros(len(sub.capacity))).bound(cutoff)
    if known.start is None:
        return None
    start = improve(sub, known.start)
    objective = evaluate(sub, start)
    if known.value >= objective * (1 - gap):
        return start, min(known.value, float(objective))
    from planner.program.solve import solve

    solved = solve(sub, replace(known, start=start), float(objective), gap, effort=EFFORT)
    if solved.assignment is None or solved.objective >= objective:
        return start, min(max(known.value, solved.bound), float(objective))
    return solved.assignment, min(solved.bound, float(solved.objective))
