"""Step time and memory of uniform pipelines in closed form: many layouts at once, for measured runs and calibration.

Every stage has the same devices and strategy; middle stages may differ by their number of layers only. The replay
says the same of one plan, pass by pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.costs.hop import StageEnd, hop_time
from planner.costs.peaks import Parts, largest, stage_peaks
from planner.costs.stage import (
    StageTerms,
    backward_time,
    forward_time,
    layer_costs,
    stage_terms,
    sync_time,
)
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model, Number
from planner.domain.plan import Strategy
from planner.units import Bytes, Seconds, choose, larger, smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What decides which formulas hold, and therefore must be the same for layouts that are priced together."""

    zero_stage: int
    policy: str
    single_stage: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """One layout, or with arrays as numbers (see `planner.costs.batch`) many of the same kind."""

    model: Model
    job: Job
    framework: Framework
    group: DeviceGroup
    strategy: Strategy
    micro_batch: Number
    num_replicas: Number
    num_microbatches: Number
    num_stages: Number
    virtual_stages: Number
    """Chunks of layers on each rank (vpp)."""
    first_layers: Number
    """Layers of the first stage (of the only one, if there is one)."""
    second_layers: Number
    """Layers of the second stage, which holds most micro-batches of those in the middle; 1 where there is none."""
    middle_layers: Number
    """Layers of the largest stage in the middle; 1 where there is none."""
    middle_place: Number
    """Stages before the first that is as large."""
    last_layers: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformCost:
    """Figures of a layout, or arrays of them."""

    step_time: Seconds
    memory: Parts
    """[bytes] of the fullest stage by part."""

    @property
    def peak_memory(self) -> Bytes:
        """[bytes]"""
        return sum(size for _, size in self.memory)


def uniform_cost(kind: Kind, layout: Uniform) -> UniformCost:
    """Return step time and memory of `layout`."""
    if kind.single_stage:
        terms = _terms(kind, layout, first=True, last=True)
        layers, recomputed = layout.first_layers, layout.first_layers * (kind.policy == "full")
        backward = backward_time(terms, layers, recomputed)
        passes = layout.num_microbatches * (forward_time(terms, layers) + backward)
        return UniformCost(
            step_time=passes + sync_time(terms, layers, backward) + layout.framework.step_overhead,
            memory=_largest(terms, layers, recomputed, 1.0),
        )
    middle = _terms(kind, layout, first=False, last=False)
    roles = [
        (_terms(kind, layout, first=True, last=False), layout.first_layers, layout.num_stages),
        (middle, layout.middle_layers, layout.num_stages - layout.middle_place),
        (_terms(kind, layout, first=False, last=True), layout.last_layers, 1.0),
    ]
    second = (middle, layout.second_layers, layout.num_stages - 1)
    return UniformCost(
        step_time=_pipeline_time(kind, layout, roles) + layout.framework.step_overhead,
        memory=largest([_memory(kind, layout, *role) for role in [*roles, second]]),
    )


def _terms(kind: Kind, layout: Uniform, *, first: bool, last: bool) -> StageTerms:
    costs = layer_costs(
        layout.model,
        layout.job,
        layout.framework,
        layout.group,
        layout.strategy,
        layout.micro_batch,
        pipelined=not kind.single_stage,
    )
    return stage_terms(
        costs,
        layout.job,
        layout.framework,
        policy="none" if kind.policy == "full" else kind.policy,
        num_replicas=layout.num_replicas,
        zero_stage=kind.zero_stage,
        first=first,
        last=last,
    )


def _pipeline_time(kind: Kind, layout: Uniform, roles: list[tuple[StageTerms, Number, Number]]) -> Seconds:
    """Return the step [s] of 1F1B: (M - 1) tau + sum t + sum hops + sync; interleaved M tau + (sum t - max t) / v + ...

    tau is the busiest stage, with what it waits for after sending where that blocks it, or the cycle through the whole
    pipeline where micro-batches outnumber stages.
    """
    full = kind.policy == "full"
    forward = [forward_time(terms, layers) for terms, layers, _ in roles]
    backward = [backward_time(terms, layers, layers * full) for terms, layers, _ in roles]
    times = [ahead + back for ahead, back in zip(forward, backward, strict=True)]
    stages, chunks = layout.num_stages, layout.virtual_stages
    inner = layout.model.num_layers - layout.first_layers - layout.last_layers
    middle_terms = roles[1][0]
    middle = inner * (middle_terms.forward_layer + middle_terms.backward_layer + full * middle_terms.replay_layer)
    total = times[0] + times[2] + middle
    end = StageEnd(group=layout.group, strategy=layout.strategy, num_replicas=layout.num_replicas)
    cluster = Cluster(name="", groups=(layout.group,))
    hop = 2 * hop_time(end, end, cluster, layout.model, layout.job, layout.framework, layout.micro_batch)
    hops = (stages - 1) * hop
    slowest = larger(larger(times[0], times[2]), times[1] * (stages > 2))
    sent = hop * layout.framework.blocking_transfers * (chunks == 1)
    busiest = larger(larger(times[0], times[2]) + sent / 2, (times[1] + sent) * (stages > 2))
    around = (total + chunks * hops) / (2 * (stages - 1) * (chunks > 1) + 1 * (chunks > 1) + stages * (chunks == 1))
    pace = larger(busiest, around * (layout.num_microbatches > stages))
    syncs = [sync_time(terms, layers, back) for (terms, layers, _), back in zip(roles, backward, strict=True)]
    ahead_of_last = backward[0] + hop / 2 + inner * (middle_terms.backward_layer + full * middle_terms.replay_layer)
    sync = larger(syncs[0], larger(syncs[1] - backward[0] - hop / 2, syncs[2] - ahead_of_last - hops / 2))
    beyond = choose(chunks == 1, total - pace, (total - slowest) / chunks)
    return layout.num_microbatches * pace + beyond + hops + sync


def _memory(kind: Kind, layout: Uniform, terms: StageTerms, layers: Number, remaining: Number) -> Parts:
    """Return the memory [bytes] by part of a stage with `remaining` stages from it to the end, itself included.

    Interleaved, a rank holds 2 (r - 1) + (v - 1) P + 1 chunk passes (Narayanan et al. 2021, section 2.2.2).
    """
    chunks = layout.virtual_stages
    interleaved = (2 * (remaining - 1) + (chunks - 1) * layout.num_stages + 1) / chunks
    held = remaining * (chunks == 1) + interleaved * (chunks > 1)
    return _largest(terms, layers, layers * (kind.policy == "full"), smaller(held, layout.num_microbatches))


def _largest(terms: StageTerms, layers: Number, recomputed: Number, in_flight: Number) -> Parts:
    """Return the parts of a stage's largest peak, for each layout."""
    return largest(parts for _, parts in stage_peaks(terms, layers, recomputed, in_flight))
