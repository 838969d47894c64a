"""The costs of a whole plan: what the replay runs on and the report explains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from planner.costs.crossing import Beyond, crossing
from planner.costs.hop import StageEnd, blocks, hop_time, inside_node
from planner.costs.levels import NO_LEVELS, Levels, memory_levels
from planner.costs.peaks import largest, stage_peaks, total
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
    in_flight: float
    """Micro-batches whose activations are held at once."""
    chunks: tuple[tuple[Seconds, Seconds], ...] = ()
    """(forward, backward) of each chunk for one micro-batch; empty if the stage is one chunk."""
    levels: Levels = NO_LEVELS
    """What the memory rises and falls by."""
    update: Seconds = 0.0
    """Of `sync`, what the optimizer's step takes, which comes last."""

    @property
    def passes(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(forward, backward) of each pass that a micro-batch makes on the stage."""
        return self.chunks or ((self.forward, self.backward),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Transfers of one micro-batch between a stage and the next, or from the last one back to the first."""

    forward: Seconds
    backward: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """Costs of all stages and of what lies between them."""

    stages: tuple[StageCost, ...]
    hops: tuple[Hop, ...]
    """Between a stage and the next."""
    step_overhead: Seconds
    wrap: Hop | None = None
    """From the last stage to the first one's next chunk; None if a micro-batch passes the stages once."""
    blocking: bool = False
    """Whether a stage waits until what it sends has arrived."""
    others: tuple[PlanCost, ...] = ()
    """Of the other kinds of pipelines."""

    @property
    def pipelines(self) -> tuple[PlanCost, ...]:
        """The costs of every kind of pipeline, this one first."""
        return (self, *self.others)

    @property
    def all_stages(self) -> tuple[StageCost, ...]:
        """The stages of every kind of pipeline, after one another."""
        return tuple(stage for pipeline in self.pipelines for stage in pipeline.stages)

    @property
    def sends(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(activations, gradients) that each stage waits for after it sent those of one micro-batch."""
        if not self.blocking:
            return ((0.0, 0.0),) * len(self.stages)
        return tuple(
            zip([*(hop.forward for hop in self.hops), 0.0], [0.0, *(hop.backward for hop in self.hops)], strict=True)
        )

    @property
    def passes(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(forward, backward) of one micro-batch on every chunk, in the order of the layers, and what blocks it."""
        sends = self.sends * len(self.stages[0].passes)
        rounds = zip(*(stage.passes for stage in self.stages), strict=True)
        times = [times for chunks in rounds for times in chunks]
        return tuple((ahead + on, back + off) for (ahead, back), (on, off) in zip(times, sends, strict=True))

    @property
    def joints(self) -> tuple[Hop, ...]:
        """The transfers between the chunks of `passes` that run beside them."""
        if self.blocking:
            return (Hop(forward=0.0, backward=0.0),) * len(self.hops)
        if self.wrap is None:
            return self.hops
        once = (*self.hops, self.wrap)
        return (once * len(self.stages[0].passes))[:-1]


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
        blocking=blocks(schedule(plan.schedule, plan.virtual_stages), framework),
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
    terms = stage_terms(
        costs,
        job,
        framework,
        policy=stage.recompute,
        num_replicas=exchange.number * stage.split,
        zero_stage=plan.zero_stage,
        first=index == 0,
        last=index == plan.num_stages - 1,
        beyond=beyond,
        apart=apart,
    )
    listed = schedule(plan.schedule, plan.virtual_stages)
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
        parts=_parts(terms, stage),
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


def _parts(terms: StageTerms, stage: Stage) -> tuple[tuple[str, Seconds], ...]:
    """Return the stage's time of one micro-batch by part; the parts sum to forward plus backward."""
    total: dict[str, float] = {}
    for factor, parts in ((float(stage.num_layers), terms.parts_layer), (1.0, terms.parts_edge)):
        for name, seconds in parts:
            total[name] = total.get(name, 0.0) + factor * float(seconds)
    total["recompute"] += stage.num_recomputed * float(terms.replay_layer)
    return tuple((name, seconds) for name, seconds in total.items() if seconds > 0.0)
