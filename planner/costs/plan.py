"""The costs of a whole plan, from the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from planner.costs.crossing import Beyond, crossing
from planner.costs.hop import StageEnd, blocks, hop_time, inside_node
from planner.costs.hosted import hosted_cost, time_parts
from planner.costs.levels import memory_levels
from planner.costs.peaks import largest, stage_peaks, total
from planner.costs.priced import Hop, PlanCost, StageCost
from planner.costs.stage import (
    StageTerms,
    backward_time,
    forward_time,
    layer_costs,
    stage_terms,
    sync_time,
    update_time,
)
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.schedules import schedule_of
from planner.units import Seconds


def plan_cost(plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> PlanCost:
    """Return the costs of `plan`."""
    asked = (cluster, model, job, framework)
    first, *others = (_pipeline_cost(one, _replicas(one, plan, cluster), *asked) for one in plan.pipelines)
    return replace(first, others=tuple(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replicas:
    """Those that a kind of pipeline exchanges gradients with, itself included."""

    number: int
    beyond: Beyond | None


def _replicas(kind: Plan, plan: Plan, cluster: Cluster) -> _Replicas:
    """Return the replicas that exchange gradients with those of a `kind`, which may be alone."""
    groups = [stage.group for stage in plan.all_stages] if plan.other_pipelines else []
    between = crossing(groups, cluster)
    beyond = None if between is None else Beyond(crossing=between, here=kind.num_replicas)
    return _Replicas(number=plan.data_parallel, beyond=beyond)


def _pipeline_cost(
    plan: Plan, exchange: _Replicas, cluster: Cluster, model: Model, job: Job, framework: Framework
) -> PlanCost:
    """Return the costs of the pipelines of one kind."""
    ends = [
        StageEnd(
            group=cluster.group(stage.group),
            strategy=stage.strategy,
            num_replicas=exchange.number * stage.split,
            split=stage.split,
        )
        for stage in plan.stages
    ]
    apart = not inside_node(ends[0], ends[-1], cluster)
    stages = tuple(
        _stage_cost(plan, end, index, exchange, model, job, framework, apart=apart) for index, end in enumerate(ends)
    )
    hops = tuple(
        Hop(
            forward=hop_time(here, there, cluster, model, job, framework, plan.micro_batch),
            backward=hop_time(there, here, cluster, model, job, framework, plan.micro_batch),
        )
        for here, there in pairwise([*ends, ends[0]])
    )
    *between, around = hops
    return PlanCost(
        stages=stages,
        hops=tuple(between),
        step_overhead=framework.step_overhead,
        wrap=around if plan.virtual_stages > 1 else None,
        blocking=blocks(schedule_of(plan), framework),
    )


def _stage_cost(
    plan: Plan,
    end: StageEnd,
    index: int,
    exchange: _Replicas,
    model: Model,
    job: Job,
    framework: Framework,
    *,
    apart: bool,
) -> StageCost:
    stage = plan.stages[index]
    group, samples = end.group, plan.micro_batch // stage.split
    beyond = exchange.beyond and replace(exchange.beyond, here=exchange.beyond.here * stage.split)
    costs = layer_costs(model, job, framework, group, stage.strategy, samples, pipelined=plan.num_stages > 1)
    listed, copies = schedule_of(plan), exchange.number * stage.split
    if listed.orders is not None:
        return hosted_cost(plan, listed, index, costs, job, framework, num_replicas=copies, beyond=beyond, apart=apart)
    terms = stage_terms(
        costs,
        job,
        framework,
        policy=stage.recompute,
        num_replicas=copies,
        zero_stage=plan.zero_stage,
        first=index == 0,
        last=index == plan.num_stages - 1,
        beyond=beyond,
        apart=apart,
    )
    in_flight = listed.held(index, plan.num_stages, plan.num_microbatches)
    layers, recomputed = stage.num_layers, stage.num_recomputed
    backward = float(backward_time(terms, layers, recomputed))
    peaks = stage_peaks(terms, layers, recomputed, in_flight)
    return StageCost(
        forward=float(forward_time(terms, layers)),
        backward=backward,
        sync=float(sync_time(terms, layers, backward)),
        memory=tuple((name, float(size)) for name, size in largest(parts for _, parts in peaks)),
        peaks=tuple((name, float(total(parts))) for name, parts in peaks),
        parts=time_parts(terms, layers, recomputed),
        in_flight=in_flight,
        chunks=_chunks(terms, stage, plan.virtual_stages, first=index == 0),
        levels=memory_levels(terms, layers, recomputed),
        update=float(update_time(terms, layers)),
    )


def _chunks(
    terms: StageTerms, stage: Stage, virtual_stages: int, *, first: bool
) -> tuple[tuple[Seconds, Seconds], ...]:
    """Return (forward, backward) of each chunk: the first stage's first has the embedding, the last's last the head.

    Recomputed layers are spread over the chunks as the layers are.
    """
    if virtual_stages == 1:
        return ()
    share, edge = stage.num_recomputed / stage.num_layers, 0 if first else virtual_stages - 1
    return tuple(
        (
            float(forward_time(terms, layers, float(chunk == edge))),
            float(backward_time(terms, layers, share * layers, float(chunk == edge))),
        )
        for chunk, layers in enumerate(stage.chunk_sizes)
    )
