"""The exact step of one kind of pipeline: its layers are spread by the same program as those of equal replicas."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.unlike import Meeting, UnlikeSpace
from planner.program.bounds import Bounder
from planner.program.improve import improve
from planner.program.subproblem import Assignment, Subproblem, build_subproblem, evaluate, slowest
from planner.program.unlike.templates import Template

EFFORT = 4.0
"""[-] work that CP-SAT may spend on one kind, in its own deterministic measure."""


@dataclass(frozen=True)
class Priced:
    """A kind of pipeline with its layers spread."""

    sub: Subproblem
    assignment: Assignment
    objective: int
    """[ns]"""
    bound: float
    """[ns] below which no spread of the layers lies."""


def price(
    space: UnlikeSpace, meeting: Meeting, one: Template, replicas: int, here: int, microbatches: int, gap: float
) -> Priced | None:
    """Return the best spread of the layers over the stages, within `gap` of the optimum; None if they do not fit.

    Args:
        space: what may be chosen.
        meeting: the groups whose gradients meet.
        one: the template.
        replicas: of all kinds.
        here: replicas on the template's group.
        microbatches: of the step, for one replica.
        gap: [-]
    """
    family = space.family(meeting, one.kind, replicas, here, microbatches)
    table = space.space.table(family, stage_counts=[one.num_stages])
    sub = build_subproblem(space.space, table, one.num_stages)
    free = np.full_like(sub.capacity, np.iinfo(np.int64).max // 4)
    sub = replace(sub, capacity=free, least=np.zeros_like(sub.least), slots=())
    if one.num_stages == 1:
        assignment = Assignment((0,), (sub.num_layers,))
        objective = evaluate(sub, assignment)
        return Priced(sub, assignment, objective, float(objective)) if objective < slowest(sub) + 1 else None
    cutoff = float(slowest(sub)) + 1
    known = Bounder(sub, np.zeros(len(sub.capacity))).bound(cutoff)
    if known.start is None:
        return None
    start = improve(sub, known.start)
    objective = evaluate(sub, start)
    if known.value >= objective * (1 - gap):
        return Priced(sub, start, objective, min(known.value, float(objective)))
    from planner.program.solve import solve

    solved = solve(sub, replace(known, start=start), float(objective), gap, effort=EFFORT)
    if solved.assignment is None or solved.objective >= objective:
        return Priced(sub, start, objective, min(max(known.value, solved.bound), float(objective)))
    return Priced(sub, solved.assignment, solved.objective, min(solved.bound, float(solved.objective)))
