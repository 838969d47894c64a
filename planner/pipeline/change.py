"""A repair is a named change of plan, cluster or job, and what is predicted of it; one predictor for every change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.checks import Context, refusals, run_checks
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.errors import Repair
from planner.pipeline.judging import SOUND
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import devices
from planner.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would be changed, and the plan, cluster and job after it."""

    text: str
    """As it would be typed where that is possible."""
    plan: Plan
    cluster: Cluster
    job: Job
    buys: bool = False
    """Whether it takes more or other devices."""


def repaired(
    change: Change, model: Model, *, runs_on: Framework | None = None, time_per_token: float | None = None
) -> Repair | None:
    """Return what comes of `change`, or None if the changed plan still breaks a rule.

    Args:
        change: what is tried.
        model: what is trained.
        runs_on: a framework that must be able to run the plan.
        time_per_token: [s] of the plan before the change; None where there was none.
    """
    plan, cluster, job = change.plan, change.cluster, change.job
    context = Context(plan=plan, cluster=cluster, model=model, job=job)
    if run_checks(context, names=SOUND):
        return None
    if runs_on is not None and refusals(plan, runs_on, cluster):
        return None
    costs = plan_cost(plan, cluster, model, job, framework_on(cluster, job.framework))
    if run_checks(replace(context, stages=costs.all_stages)):
        return None
    prediction = predict(plan, costs, cluster, model, job)
    fullest = max(prediction.stages, key=lambda stage: stage.peak_memory / stage.memory_limit)
    return Repair(
        change=change.text,
        effect=f"{fullest.peak_memory / GIB:.1f} of {fullest.memory_limit / GIB:.1f} GiB on the fullest device",
        step_time=prediction.step_time,
        peak_memory=fullest.peak_memory,
        slower_by=None if time_per_token is None else 1 / prediction.tokens_per_second / time_per_token - 1,
    )


def larger_devices(cluster: Cluster, job: Job) -> Iterator[tuple[str, Cluster]]:
    """Yield the cluster with each larger device of the catalogue in place of every group's, the smallest first."""
    largest = max(group.device.memory for group in cluster.groups)
    vendors = {group.device.vendor for group in cluster.groups}
    tried: set[float] = set()
    for device in sorted(devices(), key=lambda entry: (entry.memory, entry.name)):
        usable = device.memory > largest and device.vendor in vendors and device.peak(job.precision)
        if not usable or device.memory in tried:
            continue
        tried.add(device.memory)
        swapped = replace(cluster, groups=tuple(replace(group, device=device) for group in cluster.groups))
        yield f"devices with {device.memory / GIB:.0f} GiB, such as {device.name}", swapped
