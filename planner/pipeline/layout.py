"""From a layout named in one line to a plan, its stages cut as the framework cuts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from planner.costs.split import equal_split, stage_layers
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import CP_COMM_TYPES, SEARCHED, Plan, Stage, Strategy
from planner.errors import Problem, SpecError
from planner.parallelism import AXES
from planner.pipeline.groups import able
from planner.schedules import SCHEDULES, schedule
from planner.specs.catalog import framework as find_framework
from planner.specs.layout import PLACE

if TYPE_CHECKING:
    from planner.specs.layout import Layout

LATER = {
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
    degrees, name = _degrees(layout), layout.schedule or _schedule(layout.vpp)
    layout = _with_chunks(layout, name)
    problems = _problems(layout, degrees, name, model)
    width = 1
    for _, degree in degrees:
        width *= degree
    replicas = layout.dp or max(1, cluster.num_devices // (width * layout.pp))
    if job.global_batch % (layout.mbs * replicas):
        wanted = f"mbs={layout.mbs} times dp={replicas}"
        problems.append(
            _problem(f"{wanted} does not divide the global batch of {job.global_batch:,}; change gbs, mbs or dp")
        )
    elif not problems:
        listed = schedule(name, layout.vpp, layout.vpp_group or 0)
        reason = listed.blocker(layout.pp, job.global_batch // (layout.mbs * replicas))
        changes = "vpp_group, pp, gbs, mbs or dp" if layout.vpp_group else "pp, gbs, mbs or dp"
        problems += [_problem(f"schedule={name} {reason}; change {changes}")] if reason else []
    if problems:
        raise SpecError(problems)
    strategy = Strategy(
        degrees=degrees,
        sequence_parallel=layout.sp if layout.sp is not None else dict(degrees).get("tp", 1) > 1,
        cp_comm_type=layout.cp_comm_type or CP_COMM_TYPES[0],
    )
    return (
        Plan(
            stages=_stages(layout, name, strategy, replicas, cluster, model, find_framework(job.framework)),
            schedule=name,
            num_replicas=replicas,
            micro_batch=layout.mbs,
            num_microbatches=job.global_batch // (layout.mbs * replicas),
            zero_stage=layout.zero if layout.zero is not None else _zero_stage(job, layout.pp),
            virtual_stages=layout.vpp,
            microbatch_group=layout.vpp_group or 0,
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


def _with_chunks(layout: Layout, name: str) -> Layout:
    """Return the layout with the chunks of a schedule that has a number of its own, where none is named."""
    fixed = {listed.name: listed.virtual_stages for listed in SCHEDULES if not listed.with_chunks}
    return replace(layout, vpp=fixed[name]) if layout.vpp == 1 and name in fixed else layout


def _schedule(virtual_stages: int) -> str:
    """Return the schedule that is meant where none is named: the first that knows chunks if there are several."""
    able = (listed.name for listed in SCHEDULES if virtual_stages == 1 or listed.with_chunks)
    return next(able)


def _problem(message: str) -> Problem:
    return Problem(PLACE, message)


def _problems(layout: Layout, degrees: tuple[tuple[str, int], ...], name: str, model: Model) -> list[Problem]:
    problems = []
    for key, what in LATER.items():
        degree = getattr(layout, key) or 1
        if degree > 1 and key not in dict(degrees) and not (key == "etp" and degree == layout.tp):
            problems.append(_problem(f"{key}={degree} needs {what}, which comes in a later version; leave {key} out"))
    if layout.pp > model.num_layers:
        problems.append(_problem(f"pp={layout.pp} is more than the {model.num_layers} layers; each stage needs one"))
    elif layout.pp * layout.vpp > model.num_layers:
        chunks = f"pp={layout.pp} times vpp={layout.vpp}"
        problems.append(_problem(f"{chunks} is more than the {model.num_layers} layers; each chunk needs one"))
    if layout.chunk_layers and sum(map(sum, layout.chunk_layers)) != model.num_layers:
        held = sum(map(sum, layout.chunk_layers))
        problems.append(_problem(f"the stages hold {held} layers, and {model.name} has {model.num_layers}"))
    if name not in {listed.name for listed in SCHEDULES}:
        problems.append(_problem(_unknown(name)))
    elif schedule(name).with_chunks and layout.vpp == 1:
        problems.append(_problem(f"schedule={name} needs several chunks a stage; add vpp=2 or more"))
    elif layout.vpp != schedule(name, layout.vpp).virtual_stages:
        meant = f"leave schedule out, or write schedule={_schedule(layout.vpp)}"
        problems.append(_problem(f"vpp={layout.vpp} is nothing that schedule={name} can run; {meant}"))
    elif layout.vpp_group and not schedule(name).with_group:
        able = " or ".join(f"schedule={listed.name}" for listed in SCHEDULES if listed.with_group)
        problems.append(_problem(f"vpp_group={layout.vpp_group} needs {able} with vpp=2 or more; leave vpp_group out"))
    return problems


def _unknown(name: str) -> str:
    """Return what is wrong with a schedule that no layout can have."""
    if name == SEARCHED:
        return (
            f"schedule={name} has an order of its own, which a layout cannot say; `planner plan CLUSTER MODEL"
            f" --schedule {name} -o plan.yaml` finds one, and `planner predict --plan plan.yaml` reads it"
        )
    known = ", ".join(listed.name for listed in SCHEDULES)
    return f"schedule={name} is not known; use one of {known}"


def _stages(
    layout: Layout,
    name: str,
    strategy: Strategy,
    replicas: int,
    cluster: Cluster,
    model: Model,
    framework: Framework,
) -> tuple[Stage, ...]:
    """Cut the layers as the framework does by itself, chunks as evenly as they go, and fill the groups in order.

    A stage whose kind of device is said goes to a group that has it, if one has.
    """
    held = schedule(name, layout.vpp).hosted(layout.pp)
    chunks = _chunks(_sizes(layout, held, model, framework))
    free = [group.num_devices for group in cluster.groups]
    stages, index = [], 0
    for position in range(layout.pp):
        own = _strategy(layout, strategy, position)
        split = layout.stage_split[position] if layout.stage_split else 1
        needed = replicas * split * own.num_devices
        groups = able(layout, cluster, position)
        index = index if index in groups else groups[0]
        while index != groups[-1] and free[index] < needed:
            index = groups[groups.index(index) + 1]
        free[index] -= needed
        (first, last), *later = (chunks[number] for direction, number in held[position] if direction == 0)
        layers = sum(end - begin + 1 for begin, end in [(first, last), *later])
        stages.append(
            Stage(
                group=cluster.groups[index].name,
                first_layer=first,
                last_layer=last,
                later_chunks=tuple(later),
                strategy=own,
                recompute={"selective": framework.selective, "op": "op"}.get(layout.recompute or "", "none"),
                num_recomputed=_recomputed(layout, layers, position),
                split=split,
            )
        )
    return tuple(stages)


def _strategy(layout: Layout, usual: Strategy, position: int) -> Strategy:
    """Return the strategy of a stage: the usual one but for a tensor degree of its own."""
    if not layout.stage_tp:
        return usual
    tp = layout.stage_tp[position]
    degrees = {axis.name: usual.degree(axis.name) for axis in AXES} | {"tp": tp}
    named = tuple((name, degree) for name, degree in degrees.items() if degree > 1)
    return replace(usual, degrees=named, sequence_parallel=tp > 1 and layout.sp is not False)


def _sizes(
    layout: Layout, held: Sequence[Sequence[tuple[int, int]]], model: Model, framework: Framework
) -> Sequence[int]:
    """Return the layers of every chunk, in the order of the layers, of which the stages have `held`."""
    if layout.chunk_layers:
        numbered = {
            number: size
            for sizes, numbers in zip(layout.chunk_layers, held, strict=True)
            for size, (_, number) in zip(sizes, numbers, strict=False)
        }
        return [numbered[number] for number in sorted(numbered)]
    number = layout.pp * layout.vpp
    return stage_layers(framework, model, number) if layout.vpp == 1 else equal_split(model.num_layers, number)


def _recomputed(layout: Layout, held: int, position: int) -> int:
    """Return how many of the `held` layers of a stage are fully recomputed."""
    if layout.stage_recompute:
        return min(held, layout.stage_recompute[position])
    return min(held, held if layout.recompute_layers is None else layout.recompute_layers) * (
        layout.recompute == "full"
    )


def _chunks(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return (first, last) layer of runs of `sizes` layers."""
    firsts = accumulate(sizes[:-1], initial=0)
    return [(first, first + size - 1) for first, size in zip(firsts, sizes, strict=True)]
