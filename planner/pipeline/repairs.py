"""When nothing fits: by how much, on which stage, and the changes that would make it fit, cheapest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from planner.costs import plan_cost
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.progress import Reporter
from planner.errors import NoFeasiblePlan, NoPlanInTime, Shortage
from planner.parallelism import AXES
from planner.pipeline.change import Change, larger_devices, repaired
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework

ROUGH_GAP = 0.2
"""[-] a repair must be possible, not optimal: its step time is said to be rough."""
ANY_GAP = 0.95
"""[-] where any plan will do."""
SCALE_MAX = 1024.0
SCALE_STEPS = 7
NODE_FACTORS = (2.0, 4.0, 8.0, 16.0)
NODE_STEPS = 5
HEADROOM_MIN = 0.02
"""[-] less than this is not proposed: a run at the limit dies of fragmentation."""


def explain_infeasible(
    error: NoFeasiblePlan, cluster: Cluster, model: Model, job: Job, reporter: Reporter
) -> NoFeasiblePlan:
    """Return `error` with the shortage of the plan that comes closest, and what would make a plan possible."""
    framework = framework_on(cluster, job.framework)
    target = find_framework(job.target) if job.target else None
    rough = replace(job, gap=max(job.gap, ROUGH_GAP), time_limit=0.0)
    shortage = _shortage(cluster, model, rough, framework, target, reporter)
    repairs = []
    for change, changed_cluster, changed_job, changed_target in _changes(
        cluster, model, rough, target, shortage, reporter
    ):
        made = _rough_plan(changed_cluster, model, changed_job, framework, changed_target, reporter)
        if made is not None:
            repair = repaired(Change(text=change, plan=made, cluster=changed_cluster, job=changed_job), model)
            assert repair is not None, f"the program made a plan that breaks a rule, with {change}"
            repairs.append(replace(repair, is_rough=True))
    return NoFeasiblePlan(str(error), error.rejections, shortage, repairs)


def _rough_plan(
    cluster: Cluster, model: Model, job: Job, framework: Framework, target: Framework | None, reporter: Reporter
) -> Plan | None:
    """Return a good plan, not a proved one, or None if there is none."""
    from planner.pipeline.plan import search
    from planner.program import decode

    try:
        space, result, _ = search(cluster, model, job, framework, target, reporter, equal=True)
    except (NoFeasiblePlan, NoPlanInTime):
        return None
    return decode(space, result.found[0])


def _shortage(
    cluster: Cluster, model: Model, job: Job, framework: Framework, target: Framework | None, reporter: Reporter
) -> Shortage | None:
    """Find by bisection on all devices' memory the plan that needs the least; None if memory is not the trouble."""
    low, high = 1.0, 1.0
    job, nearest = replace(job, gap=ANY_GAP), None
    if _rough_plan(_scaled(cluster, SCALE_MAX), model, job, framework, target, reporter) is None:
        return None  # where memory is not the trouble, larger devices are no remedy
    while nearest is None:
        low, high = high, high * 2
        nearest = _rough_plan(_scaled(cluster, high), model, job, framework, target, reporter)
    for _ in range(SCALE_STEPS):
        middle = (low + high) / 2
        made = _rough_plan(_scaled(cluster, middle), model, job, framework, target, reporter)
        low, high, nearest = (low, middle, made) if made is not None else (middle, high, nearest)
    plan = nearest
    prediction = predict(plan, plan_cost(plan, cluster, model, job, framework), cluster, model, job)
    index = max(
        range(plan.num_stages),
        key=lambda s: prediction.stages[s].peak_memory - prediction.stages[s].memory_limit,
    )
    stage = prediction.stages[index]
    widths = {axis.name: sorted({entry.strategy.degree(axis.name) for entry in plan.stages}) for axis in AXES}
    cut = [f"{name} {'/'.join(map(str, found))}" for name, found in widths.items() if name == "tp" or found != [1]]
    return Shortage(
        missing_bytes=stage.peak_memory - stage.memory_limit,
        needed_bytes=stage.peak_memory,
        limit_bytes=stage.memory_limit,
        stage=index,
        num_stages=plan.num_stages,
        group=plan.stages[index].group,
        description=(
            f"pp {plan.num_stages}, {', '.join(cut)}, dp {plan.num_replicas},"
            f" ZeRO {plan.zero_stage}, micro-batch {plan.micro_batch}"
        ),
    )


def _scaled(cluster: Cluster, factor: float) -> Cluster:
    def grown(group: DeviceGroup) -> DeviceGroup:
        return replace(group, device=replace(group.device, memory=group.device.memory * factor))

    return replace(cluster, groups=tuple(grown(group) for group in cluster.groups))


def _changes(
    cluster: Cluster,
    model: Model,
    job: Job,
    target: Framework | None,
    shortage: Shortage | None,
    reporter: Reporter,
) -> Iterator[tuple[str, Cluster, Job, Framework | None]]:
    """Yield the changes worth trying, cheapest first, one of each kind."""
    for text in dict.fromkeys(constraint.text for constraint in job.constraints):
        kept = tuple(other for other in job.constraints if other.text != text)
        yield f"drop the constraint {text!r}", cluster, replace(job, constraints=kept), target
    if target is not None:
        yield f"leave out --for {target.name}", cluster, replace(job, target=""), None
    if shortage is None:
        return
    limit = shortage.limit_bytes / (1 - job.headroom)
    headroom = int(100 * (1 - shortage.needed_bytes / limit)) / 100
    if HEADROOM_MIN <= headroom < job.headroom:
        yield f"--headroom {headroom:g}", cluster, replace(job, headroom=headroom), target
    # A profile is of one device and one length of samples.
    measured = any(group.profile for group in cluster.groups)
    yield from (
        (f"--sequence-length {length}", cluster, replace(job, sequence=length), target)
        for length in (() if measured else _shorter(job, cluster, model, target, reporter))
    )
    more = _more_nodes(cluster, model, job, target, reporter)
    if more is not None:
        nodes = ", ".join(f"{group.num_nodes} nodes of {group.name}" for group in more.groups)
        yield f"{nodes} ({more.num_devices:,} devices)", more, job, target
    if not measured:
        yield from _larger_devices(cluster, model, job, target, reporter)


def _fits(cluster: Cluster, model: Model, job: Job, target: Framework | None, reporter: Reporter) -> bool:
    """Tell whether any plan exists."""
    any_plan = replace(job, gap=ANY_GAP)
    framework = framework_on(cluster, job.framework)
    return _rough_plan(cluster, model, any_plan, framework, target, reporter) is not None


def _more_nodes(
    cluster: Cluster, model: Model, job: Job, target: Framework | None, reporter: Reporter
) -> Cluster | None:
    """Return the cluster with the fewest nodes, all groups grown alike, on which a plan exists; None if many do not do.

    Memory grows with the nodes, so that what fits is searched by bisection.
    """

    def grown(share: float) -> Cluster:
        groups = (replace(group, num_nodes=ceil(group.num_nodes * share)) for group in cluster.groups)
        return replace(cluster, groups=tuple(groups))

    low, high = 1.0, next((f for f in NODE_FACTORS if _fits(grown(f), model, job, target, reporter)), None)
    if high is None:
        return None
    for _ in range(NODE_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _fits(grown(middle), model, job, target, reporter) else (middle, high)
    return grown(high)


def _shorter(job: Job, cluster: Cluster, model: Model, target: Framework | None, reporter: Reporter) -> Iterator[int]:
    """Yield the longest halved sequence that fits, if one of at least an eighth does."""
    for divisor in (2, 4, 8):
        length = job.sequence // divisor
        tried = replace(job, sequence=length)
        if length and _fits(cluster, model, tried, target, reporter):
            yield length
            return


def _larger_devices(
    cluster: Cluster, model: Model, job: Job, target: Framework | None, reporter: Reporter
) -> Iterator[tuple[str, Cluster, Job, Framework | None]]:
    """Yield the smallest larger device of the catalogue, in place of every group's, with which a plan exists."""
    for text, swapped in larger_devices(cluster, job):
        if _fits(swapped, model, job, target, reporter):
            yield text, swapped, job, target
            return
