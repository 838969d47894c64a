"""What the job demands of its plan: constraints, and the framework that must be able to run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.checks.base import Check, Context
from planner.domain.job import ALIKE, EQUAL, UNEQUAL, Constraint
from planner.domain.plan import Plan, Stage
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    plan = context.plan
    words = UNEQUAL if plan.other_pipelines else EQUAL if plan.has_even_replicas else ALIKE
    replicas = tuple(
        Problem("job.constraints", f"{constraint.text!r} does not hold: replicas are {words[0]}")
        for constraint in context.job.constraints
        if not constraint.admits_replicas(words)
    )
    return replicas + tuple(
        Problem("job.constraints", f"{constraint.text!r} does not hold: {constraint.subject} is {value}")
        for constraint in context.job.constraints
        if constraint.subject != "replicas"
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
    pipelines = plan.pipelines
    whole: dict[str, Iterable[int | str]] = {
        "pp": (pipeline.num_stages for pipeline in pipelines),
        "vpp": (pipeline.virtual_stages for pipeline in pipelines),
        "dp": (plan.data_parallel,),
        "split": (stage.split for stage in plan.all_stages),
        "zero": (pipeline.zero_stage for pipeline in pipelines),
        "micro_batch": (pipeline.micro_batch for pipeline in pipelines),
        "schedule": (pipeline.schedule for pipeline in pipelines),
        "devices": (plan.num_devices,),
        "cp_comm_type": (stage.strategy.cp_comm_type for stage in plan.all_stages if stage.strategy.degree("cp") > 1),
        "recompute": (policy for stage in plan.all_stages for policy in _policies(stage)),
    }
    if subject in whole:
        yield from dict.fromkeys(whole[subject])
    elif subject.startswith("group "):
        name = subject.removeprefix("group ")
        yield sum(devices for group, devices in plan.devices if group == name)
    else:
        yield from dict.fromkeys(stage.strategy.degree(subject) for stage in plan.all_stages)


def _policies(stage: Stage) -> Iterator[str]:
    if stage.num_recomputed:
        yield "full"
    if stage.num_recomputed < stage.num_layers:
        yield stage.recompute


DEMANDS = Check(
    code="PL109",
    name="demands",
    summary="the job's constraints hold",
    why="The plan may be good, but it is not what the job asked for.",
    check=_check,
)
