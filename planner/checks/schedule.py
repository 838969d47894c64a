"""Schedule, ZeRO stage and recompute are known and possible, and recompute no more layers than there are."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.domain.plan import Plan
from planner.errors import Problem
from planner.parallelism import ZERO_STAGES
from planner.recompute import RECOMPUTE_POLICIES
from planner.schedules import SCHEDULES, schedule


def _check(context: Context) -> tuple[Problem, ...]:
    plan = context.plan
    problems = []
    names = [listed.name for listed in SCHEDULES]
    if plan.schedule not in names:
        problems.append(Problem("schedule", f"is {plan.schedule}, which is not known; known are {', '.join(names)}"))
    else:
        problems.extend(_chunk_problems(plan))
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


def _chunk_problems(plan: Plan) -> list[Problem]:
    """Return what is wrong with the number of chunks, and with a shape of pipeline that the schedule cannot run."""
    listed, chunks = schedule(plan.schedule), plan.virtual_stages
    if chunks < 1:
        return [Problem("virtual_stages", f"is {chunks}; must be at least 1")]
    if listed.with_chunks is None and chunks > 1:
        able = ", ".join(other.name for other in SCHEDULES if other.with_chunks)
        message = f"is {chunks}; schedule {plan.schedule} has one chunk a stage; {able} has several"
        return [Problem("virtual_stages", message)]
    if listed.with_chunks is not None and chunks == 1:
        return [Problem("virtual_stages", f"is 1; schedule {plan.schedule} needs 2 or more chunks a stage")]
    reason = listed.blocker(plan.num_stages, plan.num_microbatches)
    return [Problem("schedule", f"is {plan.schedule}, which {reason}")] if reason else []


SCHEDULE = Check(name="schedule", summary="schedule, ZeRO stage and recompute are known and possible", check=_check)
