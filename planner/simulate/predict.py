"""From a plan and its priced stages to its predicted time and memory."""

from __future__ import annotations

from planner.costs import PlanCost
from planner.domain.cluster import Cluster, Device
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction, StagePrediction
from planner.schedules import schedule
from planner.simulate.replay import Replay, replay


def predict(plan: Plan, costs: PlanCost, cluster: Cluster, model: Model, job: Job) -> Prediction:
    """Return time and memory of `plan`, whose stages and joints cost `costs`."""
    stages = costs.stages
    chosen, passes, joints = schedule(plan.schedule, plan.virtual_stages), costs.passes, costs.joints
    observed = replay(
        chosen,
        [forward for forward, _ in passes],
        [backward for _, backward in passes],
        [hop.forward for hop in joints],
        [hop.backward for hop in joints],
        [stage.sync for stage in stages],
        plan.num_microbatches,
    )
    parts = _step_parts(plan, costs, observed)
    step_time = sum(seconds for _, seconds in parts)
    return Prediction(
        step_time=step_time,
        tokens_per_second=plan.global_batch * job.sequence / step_time,
        samples_per_second=plan.global_batch / step_time,
        num_devices=plan.num_devices,
        model_flops_utilization=_utilization(plan, cluster, model.flops_per_sample(job.sequence), step_time),
        bubble_fraction=sum(observed.idle) / (plan.num_stages * observed.makespan),
        time=parts,
        stages=tuple(
            StagePrediction(
                forward=cost.forward,
                backward=cost.backward,
                sync=cost.sync,
                memory=cost.memory,
                peaks=cost.peaks,
                memory_limit=cluster.group(stage.group).device.memory * (1 - job.headroom),
                device_memory=cluster.group(stage.group).device.memory,
                in_flight=chosen.held(index, plan.num_stages, plan.num_microbatches),
            )
            for index, (stage, cost) in enumerate(zip(plan.stages, stages, strict=True))
        ),
    )


def _step_parts(plan: Plan, costs: PlanCost, observed: Replay) -> tuple[tuple[str, float], ...]:
    """Return the step [s] by part on the busiest stage: its passes, its waiting, its exchange, and the overhead."""
    busiest = max(range(plan.num_stages), key=lambda stage: observed.busy[stage])
    cost = costs.stages[busiest]
    passes = [(part, plan.num_microbatches * seconds) for part, seconds in cost.parts]
    waiting = observed.step_time - sum(seconds for _, seconds in passes) - cost.sync
    return (
        *passes,
        ("pipeline_bubble", max(0.0, waiting)),
        ("sync", cost.sync),
        ("step_overhead", costs.step_overhead),
    )


def _utilization(plan: Plan, cluster: Cluster, flops_per_sample: float, step_time: float) -> float:
    """Return the model FLOP over what the devices in use could do at their 16-bit peak; 0 where that is not known."""
    peak = plan.num_replicas * sum(
        stage.strategy.num_devices * _peak16(cluster.group(stage.group).device) for stage in plan.stages
    )
    return flops_per_sample * plan.global_batch / (step_time * peak) if peak else 0.0


def _peak16(device: Device) -> float:
    return device.peak("bf16") or device.peak("fp16")
