"""Schedule, ZeRO stage and recompute are known, and recompute no more layers than there are."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.errors import Problem
from planner.parallelism import ZERO_STAGES
from planner.recompute import RECOMPUTE_POLICIES
from planner.schedules import SCHEDULES


def _check(context: Context) -> tuple[Problem, ...]:
    plan = context.plan
    problems = []
    names = [schedule.name for schedule in SCHEDULES]
    if plan.schedule not in names:
        problems.append(Problem("schedule", f"is {plan.schedule}, which is not known; known are {', '.join(names)}"))
    zero_stages = [zero.stage for zero in ZERO_STAGES]
    if plan.zero_stage not in zero_stages:
        message = f"is {plan.zero_stage}; must be {zero_stages[0]} to {zero_stages[-1]}"
        problems.append(Problem("zero_stage", message))
    # the policy that replays whole layers is chosen by their number
    policies = [policy.name for policy in RECOMPUTE_POLICIES if policy.replays != "layer"]
    for place, stage in context.places():
        if stage.recompute not in policies:
            message = f"is {stage.recompute}; must be one of {', '.join(policies)}"
            problems.append(Problem(f"{place}.recompute", f"{message} (num_recomputed layers are recomputed in full)"))
        if not 0 <= stage.num_recomputed <= max(0, stage.num_layers):
            message = f"is {stage.num_recomputed}; must be 0 to {max(0, stage.num_layers)}, the stage's layers"
            problems.append(Problem(f"{place}.num_recomputed", message))
    return tuple(problems)


SCHEDULE = Check(name="schedule", summary="schedule, ZeRO stage and recompute are known and possible", check=_check)
