"""The costs of a whole plan: what the replay runs on and the report explains."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from planner.costs.hop import StageEnd, hop_time
from planner.costs.peaks import largest, stage_peaks, total
from planner.costs.stage import (
    StageTerms,
    backward_time,
    forward_time,
    layer_costs,
    stage_terms,
    sync_time,
)
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.schedules import schedule
from planner.units import Bytes, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCost:
    """Time and memory of one stage."""

    forward: Seconds
    """Of one micro-batch."""
    backward: Seconds
    """Of one micro-batch, recompute included."""
    sync: Seconds
    """Once a step: exposed gradient exchange, and the optimizer."""
    memory: tuple[tuple[str, Bytes], ...]
    """By part, at the largest peak."""
    peaks: tuple[tuple[str, Bytes], ...]
    """Each peak by its name, in the order in which a run meets them."""
    parts: tuple[tuple[str, Seconds], ...]
    """Forward and backward time of one micro-batch by what it is spent on."""
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Transfers of one micro-batch between a stage and the next."""

    forward: Seconds
    backward: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """Costs of all stages and of what lies between them."""

    stages: tuple[StageCost, ...]
    hops: tuple[Hop, ...]
    step_overhead: Seconds


def plan_cost(plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> PlanCost:
    """Return the costs of `plan`."""
    stages = tuple(_stage_cost(plan, index, cluster, model, job, framework) for index in range(plan.num_stages))
    ends = [
        StageEnd(group=cluster.group(stage.group), strategy=stage.strategy, num_replicas=plan.num_replicas)
        for stage in plan.stages
    ]
    hops = tuple(
        Hop(
            forward=hop_time(here, there, cluster, model, job, framework, plan.micro_batch),
            backward=hop_time(there, here, cluster, model, job, framework, plan.micro_batch),
        )
        for here, there in pairwise(ends)
    )
    return PlanCost(stages=stages, hops=hops, step_overhead=framework.step_overhead)


def _stage_cost(plan: Plan, index: int, cluster: Cluster, model: Model, job: Job, framework: Framework) -> StageCost:
    stage = plan.stages[index]
    costs = layer_costs(model, job, framework, cluster.group(stage.group), stage.strategy, plan.micro_batch)
    terms = stage_terms(
        costs,
        job,
        framework,
        policy=stage.recompute,
        num_replicas=plan.num_replicas,
        zero_stage=plan.zero_stage,
        first=index == 0,
        last=index == plan.num_stages - 1,
    )
    in_flight = schedule(plan.schedule).in_flight(index, plan.num_stages, plan.num_microbatches)
    layers, recomputed = stage.num_layers, stage.num_recomputed
    backward = float(backward_time(terms, layers, recomputed))
    peaks = stage_peaks(terms, layers, recomputed, in_flight)
    return StageCost(
        forward=float(forward_time(terms, layers)),
        backward=backward,
        sync=float(sync_time(terms, layers, backward)),
        memory=tuple((name, float(size)) for name, size in largest(parts for _, parts in peaks)),
        peaks=tuple((name, float(total(parts))) for name, parts in peaks),
        parts=_parts(terms, stage),
        in_flight=in_flight,
    )


def _parts(terms: StageTerms, stage: Stage) -> tuple[tuple[str, Seconds], ...]:
    """Return the stage's time of one micro-batch by part; the parts sum to forward plus backward."""
    total: dict[str, float] = {}
    for factor, parts in ((float(stage.num_layers), terms.parts_layer), (1.0, terms.parts_edge)):
        for name, seconds in parts:
            total[name] = total.get(name, 0.0) + factor * float(seconds)
    total["recompute"] += stage.num_recomputed * float(terms.replay_layer)
    return tuple((name, seconds) for name, seconds in total.items() if seconds > 0.0)
