"""Time of what ranks with the same weights exchange: gradients and weights, once a step or around every layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from planner.costs.collectives import collective_time, moved_bytes, ring_rate
from planner.costs.crossing import Beyond, Crossing
from planner.costs.layer import LayerCost
from planner.costs.sizes import ParameterBytes, parameter_bytes
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Number
from planner.domain.plan import Strategy
from planner.parallelism import AXES, ZERO_STAGES, ZeroStage, weight_copies
from planner.units import Bytes, Seconds, larger

Transfers: TypeAlias = "tuple[tuple[str, Number], ...]"
"""(collective, bytes) that each rank takes part in, one after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What the ranks that hold the same weights of a stage exchange, and over what."""

    zero: ZeroStage
    per: ParameterBytes
    ranks: int
    """In all replicas."""
    group: DeviceGroup
    inner: Number
    """[devices] between neighbours of the ring."""
    ring: int
    """Ranks in the replicas of this group."""
    crossing: Crossing | None
    """What ranks pass that exchange their part of the ring's result with other groups; None if there are none."""
    latency: Seconds
    overlap: float
    """[-] share of the last backward pass that hides the exchange at the end of a step."""
    overlap_gather: float
    exposed_gather: float
    sharers: int
    """Micro-batches that share what is gathered and scattered around a layer."""

    def step_time(self, parameters: Number) -> Seconds:
        """Return the time [s] of `step_transfers`, before overlap."""
        return self._times(self.step_transfers(parameters))

    def gather_time(self, parameters: Number) -> Seconds:
        """Return the time [s] of `gather_transfers`."""
        return self._times(self.gather_transfers(parameters))

    def gather_transfers(self, parameters: Number) -> Transfers:
        """Return (collective, bytes) that make weights whole of which each rank has made a shard, if any do."""
        if not self.zero.optimizer or self.zero.weights:
            return ()
        return (("all_gather", self.per.sent_weights * parameters),)

    def step_transfers(self, parameters: Number) -> Transfers:
        """Return (collective, bytes) at the end of a step.

        Stage 0 adds gradients (all-reduce); stage 1 scatters gradients and gathers weights; stage 2 has scattered
        its gradients before; stage 3 keeps nothing whole. Gradients that wait are scattered now in any stage.
        """
        gradients = self.per.sent_gradients * parameters
        if not self.zero.optimizer:
            return (("all_reduce", gradients),)
        gather = self.gather_transfers(parameters)
        return gather if self.zero.gradients else (*gather, ("reduce_scatter", gradients))

    def layer_times(self, layer: LayerCost) -> tuple[Seconds, Seconds]:
        """Return the exposed seconds that each micro-batch adds to the layer's forward and backward pass.

        exposed = max(0, T - overlap compute) + share T: prefetching hides most of it, never all. Where m micro-batches
        share T, it hides behind the compute of them all, and each adds an m-th of what is exposed (Lamy-Poirier 2022,
        section 4.2).
        """
        forward, backward = (self._times(transfers) for transfers in self.pass_transfers(layer.parameters))
        return self._exposed(forward, layer.forward), self._exposed(backward, layer.backward)

    def pass_transfers(self, parameters: Number) -> tuple[Transfers, Transfers]:
        """Return (collective, bytes) of the forward and the backward pass of the micro-batches that share them."""
        gather = (("all_gather", self.per.sent_weights * parameters),) if self.zero.weights else ()
        scatter = (("reduce_scatter", self.per.sent_gradients * parameters),) if self.zero.gradients else ()
        return gather, (*gather, *scatter)

    def sent(self, transfers: Transfers) -> Bytes:
        """Return the bytes that each rank sends to the next one in the ring of the group."""
        return sum((moved_bytes(op, size, self.ring) for op, size in transfers), start=0.0)

    def _times(self, transfers: Transfers) -> Seconds:
        return sum((self._time(op, size) for op, size in transfers), start=0.0)

    def _exposed(self, time: Seconds, compute: Seconds) -> Seconds:
        exposed = larger(time - self.overlap_gather * self.sharers * compute, 0.0) + self.exposed_gather * time
        return exposed / self.sharers

    def _time(self, op: str, size: Number) -> Seconds:
        """Return the time [s] of a collective: in the ring of the group, and of each rank's part among the groups."""
        rate = ring_rate(self.group, self.ring, self.inner, size / self.ring)
        inside = collective_time(op, size, self.ring, rate, self.latency)
        if self.crossing is None:
            return inside
        part, groups = size / self.ring, self.crossing.num_groups
        across = self.crossing.rate(self.group.devices_per_node)
        return inside + collective_time(op, part, groups, across, self.crossing.latency)


def replica_exchange(
    group: DeviceGroup,
    strategy: Strategy,
    framework: Framework,
    job: Job,
    *,
    num_replicas: int,
    zero_stage: int,
    pipelined: bool,
    beyond: Beyond | None = None,
    sharers: int = 1,
) -> Exchange:
    """Return the exchange of a stage's replicas on devices of `group`, and of others `beyond` it.

    Ranks of one replica that hold the same weights take part (Megatron's distributed optimizer and torchtitan's FSDP
    shard over dp x cp); they are the outer ones of the replica, so that the ring's neighbours sit as far apart as the
    rest is wide. Where gradients wait for the last micro-batch of a pipeline, they are whole until then.

    Replicas on several groups exchange in two levels, as hierarchical all-reduce does (Jia et al. 2018, section 4.3):
    what a rank of the group's ring is left with it exchanges with the other groups, all devices of a node at once.
    """
    zero = ZERO_STAGES[zero_stage]
    if pipelined and framework.gradients_wait:
        zero = replace(zero, gradients=False)
    copies = weight_copies(AXES, strategy)
    ranks = num_replicas * copies
    return Exchange(
        zero=zero,
        per=parameter_bytes(framework, job, zero, ranks),
        ranks=ranks,
        group=group,
        inner=strategy.num_devices // copies,
        ring=ranks if beyond is None else beyond.here * copies,
        crossing=None if beyond is None else beyond.crossing,
        latency=group.inter_node.latency,
        overlap=framework.overlap_sharded if zero.optimizer else framework.overlap_replicated,
        overlap_gather=framework.overlap_gather,
        exposed_gather=framework.exposed_gather,
        sharers=sharers,
    )
