"""From a layout named in one line to a plan: equal stages, or as even as the layers allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import CP_COMM_TYPES, Plan, Stage, Strategy
from planner.errors import Problem, SpecError
from planner.parallelism import AXES
from planner.schedules import SCHEDULES
from planner.specs.catalog import framework as find_framework
from planner.specs.layout import PLACE

if TYPE_CHECKING:
    from planner.specs.layout import Layout

LATER = {
    "vpp": "interleaved schedules",
    "ep": "expert parallelism",
    "etp": "expert parallelism",
}
"""Keys that are read now and planned for later -> what they need."""


def plan_from_layout(layout: Layout, cluster: Cluster, model: Model, job: Job) -> tuple[Plan, Job]:
    """Return the plan that `layout` means on `cluster`, and the job with the layout's batch, sequence and framework.

    Missing degrees are 1; a missing dp takes the devices that are left. Stages fill the groups in their order.

    Raises:
        SpecError: the layout is not possible; with every problem.

    """
    job = _job(layout, job)
    degrees = _degrees(layout)
    problems = _problems(layout, degrees, model)
    width = 1
    for _, degree in degrees:
        width *= degree
    replicas = layout.dp or max(1, cluster.num_devices // (width * layout.pp))
    if job.global_batch % (layout.mbs * replicas):
        wanted = f"mbs={layout.mbs} times dp={replicas}"
        problems.append(
            _problem(f"{wanted} does not divide the global batch of {job.global_batch:,}; change gbs, mbs or dp")
        )
    if problems:
        raise SpecError(problems)
    strategy = Strategy(
        degrees=degrees,
        sequence_parallel=layout.sp if layout.sp is not None else dict(degrees).get("tp", 1) > 1,
        cp_comm_type=layout.cp_comm_type or CP_COMM_TYPES[0],
    )
    return (
        Plan(
            stages=_stages(layout, strategy, replicas, cluster, model),
            schedule=layout.schedule or SCHEDULES[0].name,
            num_replicas=replicas,
            micro_batch=layout.mbs,
            num_microbatches=job.global_batch // (layout.mbs * replicas),
            zero_stage=layout.zero if layout.zero is not None else _zero_stage(job, layout.pp),
        ),
        job,
    )


def _job(layout: Layout, job: Job) -> Job:
    return replace(
        job,
        global_batch=layout.gbs or job.global_batch,
        sequence=layout.seq or job.sequence,
        framework=layout.framework or job.framework,
    )


def _degrees(layout: Layout) -> tuple[tuple[str, int], ...]:
    others = dict(layout.others)
    named = ((axis.name, getattr(layout, axis.name, others.get(axis.name, 1))) for axis in AXES)
    return tuple((name, degree) for name, degree in named if degree > 1)


def _zero_stage(job: Job, num_stages: int) -> int:
    """Return the sharding that the framework's users usually choose: optimizer sharded where it can be."""
    can = find_framework(job.framework).can
    stages = can.zero_stages_pipeline if num_stages > 1 else can.zero_stages
    return 1 if 1 in stages or not stages else max(stages)


def _problem(message: str) -> Problem:
    return Problem(PLACE, message)


def _problems(layout: Layout, degrees: tuple[tuple[str, int], ...], model: Model) -> list[Problem]:
    problems = []
    for key, what in LATER.items():
        degree = getattr(layout, key) or 1
        if degree > 1 and key not in dict(degrees) and not (key == "etp" and degree == layout.tp):
            problems.append(_problem(f"{key}={degree} needs {what}, which comes in a later version; leave {key} out"))
    if layout.pp > model.num_layers:
        problems.append(_problem(f"pp={layout.pp} is more than the {model.num_layers} layers; each stage needs one"))
    if layout.schedule and layout.schedule not in {schedule.name for schedule in SCHEDULES}:
        known = ", ".join(schedule.name for schedule in SCHEDULES)
        problems.append(_problem(f"schedule={layout.schedule} is not known; use one of {known}"))
    return problems


def _stages(layout: Layout, strategy: Strategy, replicas: int, cluster: Cluster, model: Model) -> tuple[Stage, ...]:
    """Cut the layers as evenly as they go, earlier stages taking what is left over, and fill the groups in order."""
    base, left = divmod(model.num_layers, layout.pp)
    free = [group.num_devices for group in cluster.groups]
    names = [group.name for group in cluster.groups]
    needed = replicas * strategy.num_devices
    stages, first, index = [], 0, 0
    for position in range(layout.pp):
        while index < len(free) - 1 and free[index] < needed:
            index += 1
        free[index] -= needed
        count = base + (1 if position < left else 0)
        full = layout.recompute == "full"
        stages.append(
            Stage(
                group=names[index],
                first_layer=first,
                last_layer=first + count - 1,
                strategy=strategy,
                recompute="selective" if layout.recompute == "selective" else "none",
                num_recomputed=count if full else 0,
            )
        )
        first += count
    return tuple(stages)
