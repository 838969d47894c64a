"""All that is decided in a plan, choice by choice, in words that are unlike wherever two plans are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.parallelism import AXES
from planner.report.stages import degree, recompute

USUAL = "the framework's"
"""Name of the optimizer where the job names none."""


def choices(plan: Plan, cluster: Cluster, model: Model, job: Job) -> list[tuple[str, str]]:
    """Return (name, value) of all that is decided, the widest choices first; the names are those of every plan.

    Stages and kinds of pipelines stand in their order: ``3 x 20, 19``, or once where all are alike.
    """
    kinds, stages = plan.pipelines, plan.all_stages
    return [
        ("devices", _devices(plan, cluster)),
        *((axis.name, _runs(degree(stage, axis.name) for stage in stages)) for axis in AXES),
        ("pp", _runs(one.num_stages for one in kinds)),
        ("vpp", _runs(one.virtual_stages for one in kinds)),
        ("dp", " + ".join(str(one.num_replicas) for one in kinds)),
        ("split", _runs(stage.split for stage in stages)),
        ("micro-batch", _runs(one.micro_batch for one in kinds)),
        ("micro-batches", _runs(one.num_microbatches for one in kinds)),
        ("short replicas", _runs(one.short_replicas for one in kinds)),
        ("ZeRO", _runs(one.zero_stage for one in kinds)),
        ("schedule", _runs(one.schedule for one in kinds)),
        ("vpp group", _runs(_group(one) for one in kinds)),
        ("order", _runs(_order(one) for one in kinds)),
        ("groups", _runs(stage.group for stage in stages)),
        ("layers", _counted(_layers(stage) for stage in stages)),
        ("recompute", _runs(recompute(stage) for stage in stages)),
        ("sequence parallel", _runs("yes" if stage.strategy.sequence_parallel else "no" for stage in stages)),
        ("global batch", f"{job.global_batch:,}"),
        ("sequence", f"{job.sequence:,}"),
        ("precision", job.precision),
        ("optimizer", job.optimizer.name if job.optimizer else USUAL),
        ("framework", job.framework),
        ("head-room", f"{100 * job.headroom:g}%"),
        ("model", model.name),
    ]


def _devices(plan: Plan, cluster: Cluster) -> str:
    """Return how many devices of which groups are used; by the group's name where the cluster has none of it."""
    groups: dict[str, int] = {}
    for group, number in plan.devices:
        groups[group] = groups.get(group, 0) + number
    names = {group.name: group.device.name for group in cluster.groups}
    return " + ".join(f"{number} x {names.get(group, group)}" for group, number in groups.items())


def _group(plan: Plan) -> str:
    """Return how many micro-batches pass a chunk before any passes the next; ``pp`` where it is one a stage."""
    return "pp" if plan.microbatch_group in {0, plan.num_stages} else str(plan.microbatch_group)


def _order(plan: Plan) -> str:
    """Return by what an order of its own is told from others; a dash for a plan without one."""
    from planner.specs.plan import digest

    if not plan.order:
        return "-"
    number = sum(row.count(",") + 1 for row in plan.order)
    return f"{number} passes, {digest(plan.order).removeprefix('sha256:')[:8]}"


def _layers(stage: Stage) -> str:
    """Return how many layers a stage has, those of unlike chunks one by one: the schedule says which these are."""
    sizes = stage.chunk_sizes
    return str(sum(sizes)) if len(set(sizes)) == 1 else "+".join(map(str, sizes))


def _runs(values: Iterable[object]) -> str:
    """Return values in their order, runs of the same one as ``3 x VALUE``; one that all have stands alone."""
    found = [str(value) for value in values]
    return found[0] if len(set(found)) == 1 else _counted(found)


def _counted(values: Iterable[str]) -> str:
    """Return the same with the number of a value that all have."""
    lengths = [(value, len(list(run))) for value, run in groupby(values)]
    return ", ".join(value if length == 1 else f"{length} x {value}" for value, length in lengths)
