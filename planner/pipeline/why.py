"""Why not? The best plan under one more constraint, beside the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.domain.job import ANY_SCHEDULE, Constraint
from planner.domain.prediction import Outcome
from planner.domain.progress import Reporter
from planner.errors import NoFeasiblePlan
from planner.pipeline.judging import predict_plan
from planner.specs.constraints import parse_constraint
from planner.specs.plan import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What a constraint would cost."""

    constraint: Constraint
    outcome: Outcome | None
    """The best plan that satisfies it; None if there is none."""
    infeasible: str
    """Why there is none; empty if there is one."""
    slower_by: float
    """[-] of the alternative against the plan; negative if it is faster."""
    differences: tuple[tuple[str, float, float], ...]
    """(part of the step, [s] in the plan, [s] in the alternative)."""


def why_not(file: PlanFile, text: str, reporter: Reporter | None = None) -> WhyNot:
    """Return the best plan that satisfies the constraint `text` too, compared with the plan in `file`.

    It takes the place of what the job itself demands of the same subject, where the two contradict.

    Raises:
        SpecError: the constraint cannot be read.

    """
    from planner.pipeline.plan import make_plan

    groups = tuple(group.name for group in file.cluster.groups)
    constraint = parse_constraint(text, "--why-not", groups=groups)
    kept = (own for own in file.job.constraints if not _contradict(own, constraint))
    job = replace(file.job, constraints=(*kept, constraint))
    prediction, _ = predict_plan(file.plan, file.cluster, file.model, file.job)
    try:
        outcome = make_plan(file.cluster, file.model, job, references=False, reporter=reporter)
    except NoFeasiblePlan as error:
        return WhyNot(constraint=constraint, outcome=None, infeasible=str(error), slower_by=0.0, differences=())
    ours, theirs = dict(prediction.time), dict(outcome.prediction.time)
    return WhyNot(
        constraint=constraint,
        outcome=outcome,
        infeasible="",
        slower_by=outcome.prediction.step_time / prediction.step_time - 1,
        differences=tuple((part, ours.get(part, 0.0), theirs.get(part, 0.0)) for part in {**ours, **theirs}),
    )


def _contradict(one: Constraint, other: Constraint) -> bool:
    """Tell whether no value satisfies both constraints, where one names the only value that it admits."""
    if one.subject != other.subject:
        return False
    exact = [(a, b) for a, b in ((one, other), (other, one)) if a.operator == "=" and a.value != ANY_SCHEDULE]
    return any(not b.admits(int(a.value) if a.value.isdecimal() else a.value) for a, b in exact)
