"""From a plan and its priced stages to its predicted time and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.costs import PlanCost
from planner.domain.cluster import Cluster, Device
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction, StagePrediction, busiest_stage
from planner.schedules import schedule_of
from planner.simulate.board import StageTimes
from planner.simulate.orders import replay_orders
from planner.simulate.replay import Replay, replay
from planner.units import Seconds


def predict(plan: Plan, costs: PlanCost, cluster: Cluster, model: Model, job: Job) -> Prediction:
    """Return time and memory of `plan`, whose stages and joints cost `costs`.

    Where pipelines are of several kinds, the exchange starts when the last of them has run its last pass.
    """
    pipelines = plan.pipelines
    observed, sync = replayed(plan, costs)
    stages = tuple(_stages(plan, costs, cluster, job))
    parts = _step_parts(plan, costs, observed, sync, busiest_stage(plan, stages))
    step_time = sum(seconds for _, seconds in parts)
    return Prediction(
        step_time=step_time,
        tokens_per_second=plan.global_batch * job.sequence / step_time,
        samples_per_second=plan.global_batch / step_time,
        num_devices=plan.num_devices,
        model_flops_utilization=_utilization(plan, cluster, model.flops_per_sample(job.sequence), step_time),
        bubble_fraction=_bubble(pipelines, costs, observed),
        time=parts,
        stages=stages,
    )


def _stages(plan: Plan, costs: PlanCost, cluster: Cluster, job: Job) -> Iterator[StagePrediction]:
    """Yield time and memory of every stage of all kinds of pipelines."""
    pipelines = plan.pipelines
    found = zip(plan.all_stages, costs.all_stages, _in_flight(pipelines, costs), _updates(pipelines), strict=True)
    for stage, cost, held, updates in found:
        device = cluster.group(stage.group).device
        yield StagePrediction(
            forward=cost.forward,
            backward=cost.backward,
            sync=updates * cost.sync,
            memory=cost.memory,
            peaks=cost.peaks,
            memory_limit=device.memory * (1 - job.headroom),
            device_memory=device.memory,
            in_flight=held,
        )


def replayed(plan: Plan, costs: PlanCost) -> tuple[list[Replay], Seconds | None]:
    """Return the replay of every kind of pipeline, and [s] of the exchange that follows all of them.

    None where there is one kind, whose replay has it.
    """
    alone = not plan.other_pipelines
    found = [_replayed(one, cost, alone=alone) for one, cost in zip(plan.pipelines, costs.pipelines, strict=True)]
    return found, None if alone else max(stage.sync for stage in costs.all_stages)


def _in_flight(pipelines: Sequence[Plan], costs: PlanCost) -> Iterator[float]:
    """Yield the micro-batches that every stage holds at most, its layers counted where they differ between chunks."""
    for plan, cost in zip(pipelines, costs.pipelines, strict=True):
        chosen = schedule_of(plan)
        for index, stage in enumerate(cost.stages):
            yield stage.in_flight if stage.hosted else chosen.held(index, plan.num_stages, plan.num_microbatches)


def _updates(pipelines: Sequence[Plan]) -> Iterator[int]:
    """Yield how often every stage updates its weights in a step."""
    for plan in pipelines:
        yield from [schedule_of(plan).updates(plan.num_microbatches)] * plan.num_stages


def _replayed(plan: Plan, costs: PlanCost, *, alone: bool) -> Replay:
    """Return the replay of one kind of pipeline; without its exchange where others are waited for."""
    chosen = schedule_of(plan)
    if chosen.orders is not None:
        times = {
            (one.direction, one.stage): StageTimes(
                forward=one.forward, backward=one.backward, weight=one.weight, sync=one.sync * alone
            )
            for stage in costs.stages
            for one in stage.hosted
        }
        sync = [stage.sync * alone for stage in costs.stages]
        return replay_orders(chosen, times, costs.links, sync, plan.num_microbatches)
    passes, joints = costs.passes, costs.joints
    return replay(
        chosen,
        [forward for forward, _ in passes],
        [backward for _, backward in passes],
        [hop.forward for hop in joints],
        [hop.backward for hop in joints],
        [stage.sync * alone for stage in costs.stages],
        plan.num_microbatches,
    )


def _step_parts(
    plan: Plan, costs: PlanCost, observed: Sequence[Replay], exchange: float | None, busiest: int
) -> tuple[tuple[str, float], ...]:
    """Return the step [s] by part on the `busiest` stage: its passes, its waiting, its exchange, and the overhead.

    An `exchange` [s] that all pipelines share replaces the stage's own.
    """
    kind, stage = [(kind, stage) for kind, one in enumerate(plan.pipelines) for stage in range(one.num_stages)][busiest]
    own, cost = plan.pipelines[kind], costs.all_stages[busiest]
    parts = [*cost.parts, ("stage_transfers", sum(costs.pipelines[kind].sends[stage]))]
    passes = [(part, own.num_microbatches * seconds) for part, seconds in parts if seconds > 0.0]
    sync = observed[kind].exposed_sync[stage] if exchange is None else exchange
    ends = max(one.step_time for one in observed) + (exchange or 0.0)
    waiting = ends - sum(seconds for _, seconds in passes) - sync
    predicting = min(sync, schedule_of(own).updates(own.num_microbatches) * cost.prediction)
    return (
        *passes,
        ("pipeline_bubble", max(0.0, waiting)),
        ("sync", sync - predicting),
        *([("weight_prediction", predicting)] if predicting > 0.0 else []),
        ("step_overhead", costs.step_overhead),
    )


def _bubble(pipelines: Sequence[Plan], costs: PlanCost, observed: Sequence[Replay]) -> float:
    """Return the idle share [-] of all stages' compute lanes until the last pass of the last pipeline."""
    makespan = max(one.makespan for one in observed)
    lanes = sum(pipeline.num_replicas * pipeline.num_stages for pipeline in pipelines)
    work = sum(
        (plan.num_replicas - plan.short_replicas / plan.num_microbatches)
        * (sum(one.busy) - plan.num_microbatches * sum(map(sum, cost.sends)))
        for plan, cost, one in zip(pipelines, costs.pipelines, observed, strict=True)
    )
    return max(0.0, 1.0 - work / (lanes * makespan))


def _utilization(plan: Plan, cluster: Cluster, flops_per_sample: float, step_time: float) -> float:
    """Return the model FLOP over what the devices in use could do at their 16-bit peak; 0 where that is not known."""
    peak = sum(devices * _peak16(cluster.group(group).device) for group, devices in plan.devices)
    return flops_per_sample * plan.global_batch / (step_time * peak) if peak else 0.0


def _peak16(device: Device) -> float:
    return device.peak("bf16") or device.peak("fp16")
