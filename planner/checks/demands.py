"""What the job demands of its plan: constraints, and the framework that must be able to run it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.checks.base import Check, Context
from planner.domain.job import Constraint
from planner.domain.plan import Plan, Stage
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    return tuple(
        Problem("job.constraints", f"{constraint.text!r} does not hold: {constraint.subject} is {value}")
        for constraint in context.job.constraints
        for value in _values(constraint, context.plan)
        if not _holds(constraint, value)
    )


def _holds(constraint: Constraint, value: int | str) -> bool:
    if constraint.value == "unused":
        return value == 0
    return constraint.admits(value)


def _values(constraint: Constraint, plan: Plan) -> Iterator[int | str]:
    """Yield the values that the plan gives to a constraint's subject, each once."""
    subject = constraint.subject
    whole: dict[str, int | str] = {
        "pp": plan.num_stages,
        "vpp": plan.virtual_stages,
        "dp": plan.num_replicas,
        "zero": plan.zero_stage,
        "micro_batch": plan.micro_batch,
        "schedule": plan.schedule,
        "devices": plan.num_devices,
    }
    if subject in whole:
        yield whole[subject]
    elif subject == "recompute":
        yield from dict.fromkeys(policy for stage in plan.stages for policy in _policies(stage))
    elif subject.startswith("group "):
        name = subject.removeprefix("group ")
        used = sum(stage.strategy.num_devices for stage in plan.stages if stage.group == name)
        yield plan.num_replicas * used
    else:
        yield from dict.fromkeys(stage.strategy.degree(subject) for stage in plan.stages)


def _policies(stage: Stage) -> Iterator[str]:
    if stage.num_recomputed:
        yield "full"
    if stage.num_recomputed < stage.num_layers:
        yield stage.recompute


DEMANDS = Check(name="demands", summary="the job's constraints hold", check=_check)
