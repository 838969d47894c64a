"""What puts a plan's step time in context: peak arithmetic, and what each group does on its own."""

from __future__ import annotations

from dataclasses import replace

from planner.costs.compute import half_peak, matmul_peak
from planner.domain.cluster import Cluster, DeviceGroup, Link, Network
from planner.domain.framework import Framework
from planner.domain.job import EQUAL, Job
from planner.domain.model import Model
from planner.domain.prediction import References
from planner.domain.progress import Part, Reporter
from planner.errors import NoFeasiblePlan, NoPlanInTime
from planner.specs.constraints import parse_constraint
from planner.units import NANOSECOND

FREE = 1e30
"""[bytes], [bytes/s]: memory or bandwidth that never binds."""


def find_references(
    cluster: Cluster,
    model: Model,
    job: Job,
    framework: Framework,
    target: Framework | None,
    reporter: Reporter,
    *,
    full: bool,
) -> References:
    """Return the references; those that need a search only if `full`, and only where groups differ."""
    peak = sum(
        group.num_devices * (matmul_peak(group.device, job.precision) or half_peak(group.device))
        for group in cluster.groups
    )
    flops_time = model.flops_per_sample(job.sequence) * job.global_batch / peak
    homogeneous, kind, ceiling = 0.0, "", 0.0
    if full and len(cluster.groups) > 1:
        # Constraints name groups and degrees of the mixed cluster; a group on its own is free to do its best.
        free = replace(job, constraints=())
        try:
            homogeneous, kind = _homogeneous(cluster, model, free, framework, target, reporter)
            equal = replace(free, constraints=(parse_constraint(f"replicas = {EQUAL[0]}"),))
            within = Part(reporter, "whole layers")
            ideal = _bound(_ideal(cluster), model, equal, _free_framework(framework), None, within)
            ceiling = homogeneous / ideal
        except (NoPlanInTime, KeyboardInterrupt):
            homogeneous, kind, ceiling = 0.0, "", 0.0
    return References(
        flops_step_time=flops_time,
        homogeneous_step_time=homogeneous,
        homogeneous_reference=kind,
        whole_layer_ceiling=ceiling,
    )


def _homogeneous(
    cluster: Cluster,
    model: Model,
    job: Job,
    framework: Framework,
    target: Framework | None,
    reporter: Reporter,
) -> tuple[float, str]:
    """Return the step time [s] if the groups' proved best rates on their own added up (HETHUB, 2024).

    A group that cannot hold the model is taken without its memory limit; the reference is then called relaxed.
    """
    rate, kind = 0.0, "exact"
    for group in cluster.groups:
        if not group.device.peak(job.precision):
            continue
        alone, within = Cluster(name=group.name, groups=(group,)), Part(reporter, f"{group.name} alone")
        try:
            seconds = _bound(alone, model, job, framework, target, within)
        except NoFeasiblePlan:
            kind = "relaxed"
            lifted = replace(group, device=replace(group.device, memory=FREE))
            seconds = _bound(replace(alone, groups=(lifted,)), model, job, framework, target, within)
        rate += 1 / seconds
    return 1 / rate, kind


def _bound(
    cluster: Cluster,
    model: Model,
    job: Job,
    framework: Framework,
    target: Framework | None,
    reporter: Reporter,
) -> float:
    """Return the proved lower bound [s] on the step time on `cluster`."""
    from planner.pipeline.plan import search

    _, result, unlike = search(cluster, model, job, framework, target, reporter)
    return min(result.lower_bound, unlike.lower_bound) * NANOSECOND + framework.step_overhead


def _ideal(cluster: Cluster) -> Cluster:
    """Return the cluster with free communication and no memory limits."""
    return Cluster(name=cluster.name, groups=tuple(_ideal_group(group) for group in cluster.groups))


def _ideal_group(group: DeviceGroup) -> DeviceGroup:
    return replace(
        group,
        device=replace(group.device, memory=FREE),
        intra_node=Link(name="free", bandwidth=FREE, efficiency=1.0, latency=0.0),
        inter_node=Network(name="free", bandwidth=FREE, efficiency=1.0, latency=0.0),
    )


def _free_framework(framework: Framework) -> Framework:
    return replace(framework, collective_latency=0.0, hop_latency=0.0)
