"""Reasons to doubt a prediction beyond its interval: what no measured run, or few, can vouch for."""

from __future__ import annotations

from collections.abc import Iterable

from planner.costs.compute import HALF_PRECISIONS
from planner.domain.cluster import Cluster
from planner.domain.confidence import MeasuredRuns, chip
from planner.domain.job import Job
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.schedules import schedule_of

CONTEXT_RANKS = 4
"""From this context degree on published runs are too few to tell (torchtitan's were 30% off)."""
DEVICES_MOST = 512
"""Beyond this number of devices stragglers and shared networks cost what no formula says."""
LAUNCH_MOST = 0.2
"""[-] share of the step that waits for kernel launches: the host decides, of which the cluster file says nothing."""


def doubts(
    plan: Plan, prediction: Prediction, cluster: Cluster, job: Job, measured: Iterable[MeasuredRuns]
) -> tuple[str, ...]:
    """Return the reasons, in words; none is the best answer."""
    return (*_unmeasured(plan, cluster, job, tuple(measured)), *_unreliable(plan, prediction, cluster))


def chips(plan: Plan, cluster: Cluster) -> tuple[str, ...]:
    """Return the chips that a plan uses, each once, in the order of its stages."""
    return tuple(dict.fromkeys(chip(cluster.group(stage.group).device.name) for stage in plan.all_stages))


def _unmeasured(plan: Plan, cluster: Cluster, job: Job, measured: tuple[MeasuredRuns, ...]) -> list[str]:
    """Return what no run was measured of: the framework; else it on a chip in use; else its precision there."""
    own = [runs for runs in measured if runs.profile == job.framework]
    found = [] if own else [f"no measured runs of {job.framework}"]
    for name in chips(plan, cluster):
        here = {_width(runs.precision) for runs in own if runs.chip == name}
        if name not in {runs.chip for runs in measured}:
            found.append(f"no measured runs on {name.upper()}")
        elif own and not here:
            found.append(f"no measured runs of {job.framework} on {name.upper()}")
        elif own and _width(job.precision) not in here:
            found.append(f"no measured runs of {job.framework} on {name.upper()} in {job.precision}")
    return found


def _width(precision: str) -> str:
    """Return what runs at the same pace share: bf16 and fp16 do, on every device that has both."""
    return "16-bit" if precision in HALF_PRECISIONS else precision


def _otherwise(plan: Plan) -> str:
    """Return what gradients are of: how old the weights are at most, or how far ahead they are predicted."""
    listed = schedule_of(plan)
    shapes = [(rank, plan.num_stages, plan.num_microbatches) for rank in range(plan.num_stages)]
    ahead = [max(listed.predicted(*shape)) for shape in shapes]
    numbers = ahead if any(ahead) else [listed.staleness(*shape) for shape in shapes]
    if not any(numbers):
        return "weights change after every micro-batch" if listed.updates_each else "steps run into one another"
    most = max(numbers)
    units = ("micro-batch", "micro-batches") if listed.updates_each else ("step", "steps")
    size = f"{'' if len(set(numbers)) == 1 else 'up to '}{most} {units[most > 1]}"
    return f"gradients are of weights {f'predicted {size} ahead' if any(ahead) else f'{size} old'}"


def _unreliable(plan: Plan, prediction: Prediction, cluster: Cluster) -> list[str]:
    """Return what runs of the same kind were often far off for."""
    found = []
    if any(stage.strategy.degree("tp") > cluster.group(stage.group).devices_per_node for stage in plan.all_stages):
        found.append("tensor ranks on several nodes")
    context = max(stage.strategy.degree("cp") for stage in plan.all_stages)
    if context >= CONTEXT_RANKS:
        found.append(f"cp {context}: from {CONTEXT_RANKS} on little is measured")
    for listed, kind in {schedule_of(kind): kind for kind in plan.pipelines}.items():
        if listed.orders is not None and plan.num_stages > 1:
            found.append(f"no measured runs of {listed.name}")
        if listed.changes_semantics:
            found.append(f"{listed.name} trains otherwise: {_otherwise(kind)}")
    if plan.num_devices > DEVICES_MOST:
        found.append(f"more than {DEVICES_MOST} devices")
    launch = dict(prediction.time).get("launch", 0.0) / prediction.step_time
    if launch > LAUNCH_MOST:
        found.append(f"{launch:.0%} of the step waits for kernel launches, which depends on the host")
    return found
