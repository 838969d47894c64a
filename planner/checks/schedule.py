"""Schedule, ZeRO stage and recompute are known and possible, and recompute no more layers than there are."""

from __future__ import annotations

from collections.abc import Iterator

from planner.checks.base import Check, Context
from planner.domain.plan import SEARCHED, Plan
from planner.errors import Problem
from planner.parallelism import ZERO_STAGES
from planner.recompute import RECOMPUTE_POLICIES
from planner.schedules import SCHEDULES, schedule_of


def _check(context: Context) -> tuple[Problem, ...]:
    problems = [
        Problem(f"{prefix}{key}", message)
        for prefix, pipeline in context.pipelines()
        for key, message in _own_problems(pipeline, context.plan)
    ]
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


def _own_problems(plan: Plan, first: Plan) -> Iterator[tuple[str, str]]:
    """Yield key and trouble of one kind of pipeline, which exchanges gradients with the `first`."""
    names = [*(listed.name for listed in SCHEDULES), SEARCHED]
    if plan.schedule == SEARCHED:
        if plan.short_replicas:
            message = f"is {plan.short_replicas}; must be 0 with an order of its own, which is that of all replicas"
            yield "short_replicas", message
    elif plan.schedule not in names:
        yield "schedule", f"is {plan.schedule}, which is not known; known are {', '.join(names)}"
    elif schedule_of(plan).updates_each and first.other_pipelines:
        yield (
            "schedule",
            f"is {plan.schedule}, where replicas meet after each micro-batch; unlike ones meet once a step",
        )
    else:
        yield from _chunk_problems(plan)
    zero_stages = [zero.stage for zero in ZERO_STAGES]
    if plan.zero_stage not in zero_stages:
        yield "zero_stage", f"is {plan.zero_stage}; must be {zero_stages[0]} to {zero_stages[-1]}"
    elif plan.zero_stage != first.zero_stage:
        yield "zero_stage", f"is {plan.zero_stage}; must be {first.zero_stage}, that of the pipelines beside it"
    elif first.other_pipelines and ZERO_STAGES[plan.zero_stage].gradients:
        yield "zero_stage", f"is {plan.zero_stage}; must be 0 or 1: unlike pipelines meet at the end of a step only"


def _chunk_problems(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the number of chunks, or with a shape of pipeline that the schedule cannot run."""
    listed, chunks = schedule_of(plan), plan.virtual_stages
    if chunks < 1:
        yield "virtual_stages", f"is {chunks}; must be at least 1"
    elif listed.with_chunks is None and chunks != listed.virtual_stages:
        able = ", ".join(other.name for other in SCHEDULES if other.with_chunks)
        has = "one chunk" if listed.virtual_stages == 1 else f"{listed.virtual_stages} chunks"
        message = f"is {chunks}; schedule {plan.schedule} has {has} a stage; any other number have {able}"
        yield "virtual_stages", message
    elif listed.with_chunks is not None and chunks == 1:
        yield "virtual_stages", f"is 1; schedule {plan.schedule} needs 2 or more chunks a stage"
    elif plan.microbatch_group and listed.with_group is None:
        able = ", ".join(other.name for other in SCHEDULES if other.with_group)
        message = f"is {plan.microbatch_group}; must be 0 with schedule {plan.schedule}; groups have {able}"
        yield "microbatch_group", message
    elif reason := listed.blocker(plan.num_stages, plan.num_microbatches):
        yield "schedule", f"is {plan.schedule}, which {reason}"
    elif chunks > 1 and plan.short_replicas:
        message = f"is {plan.short_replicas}; must be 0 with chunks, whose micro-batches come in rounds of all stages"
        yield "short_replicas", message
    elif listed.updates_each and plan.short_replicas:
        message = (
            f"is {plan.short_replicas}; must be 0 with {plan.schedule}, where replicas meet after each micro-batch"
        )
        yield "short_replicas", message
    elif listed.directions > 1 and plan.short_replicas:
        message = f"is {plan.short_replicas}; must be 0 with {plan.schedule}, which has as many from either end"
        yield "short_replicas", message
    elif listed.directions > 1:
        yield from _mirror_problems(plan)


def _mirror_problems(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield stages that are cut another way than those whose weights they hold too, seen from the other end."""
    for index in range(plan.num_stages // 2):
        facing = plan.num_stages - 1 - index
        one, other = plan.stages[index], plan.stages[facing]
        if (one.strategy, one.split, one.recompute) != (other.strategy, other.split, other.recompute):
            message = (
                f"are cut or recomputed otherwise than those of stages[{index}]; must be alike with {plan.schedule}"
            )
            yield f"stages[{facing}]", f"{message}, where both hold the same layers"


SCHEDULE = Check(
    code="PL103",
    name="schedule",
    summary="schedule, ZeRO stage and recompute are known and possible",
    why="It would deadlock, or leave stages without work: some need several chunks a stage, or many micro-batches.",
    check=_check,
)
