"""Time of the transfers between neighbouring stages: priced on the pair, for it depends on both ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from planner.costs.collectives import device_rate
from planner.costs.layer import layer_shard
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model, Number
from planner.domain.plan import Strategy
from planner.schedules import Schedule
from planner.units import Bytes, Seconds, choose, larger, smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """One end of a joint: where a stage's copies sit."""

    group: DeviceGroup
    strategy: Strategy
    num_replicas: int
    """Copies of the stage in all pipelines."""
    split: int = 1
    """Copies in each pipeline, over which its micro-batches are divided."""

    @property
    def replicas_per_node(self) -> Number:
        """Copies whose transfers share the adapters of one node; below 1 where a copy spans nodes."""
        width = self.strategy.num_devices
        fitting = choose(
            width <= self.group.devices_per_node,
            self.group.devices_per_node // width,
            self.group.devices_per_node / width,
        )
        return smaller(self.num_replicas, fitting)

    @property
    def senders(self) -> Number:
        """Devices of one node that send at once."""
        return smaller(self.group.devices_per_node, self.replicas_per_node * self.strategy.num_devices)

    def node_rate(self, message: Bytes, *, staged: bool = False) -> Number:
        """Return [bytes/s] at which the copies of one node together reach the network, by way of the host if `staged`.

        They send messages of `message` bytes.
        """
        group, nodes = self.group, self.group.num_nodes
        alone = device_rate(group.inter_node, group.devices_per_node, nodes, message)
        if staged and group.host is not None:
            alone = smaller(alone, group.host.link_bandwidth)
        return smaller(group.inter_node.node_rate(nodes, self.senders, message), self.senders * alone)

    @property
    def fills_group(self) -> bool:
        """Whether the stage's copies take every device of the group."""
        return self.num_replicas * self.strategy.num_devices == self.group.num_devices


def blocks(schedule: Schedule, framework: Framework) -> bool:
    """Tell whether a stage waits for what it sends: Megatron-LM overlaps transfers in interleaved pipelines only."""
    return schedule.exposes_transfers and framework.blocking_transfers


def hop_time(
    sender: StageEnd, receiver: StageEnd, cluster: Cluster, model: Model, job: Job, framework: Framework, samples: int
) -> Seconds:
    """Return the time [s] of handing one micro-batch of `samples` from one stage to the next, one way.

    All pipelines hand over at the same time and share the adapters of their nodes; each copy of a stage must get its
    part of the micro-batch through. A tensor group that is sequence parallel sends each element once. In a node the
    stages may lie in different parts of it. TCP passes the hosts: no device sends faster than its link to them.
    """
    size = sender.split * boundary_bytes(sender, model, job, framework, samples // sender.split)
    link = cluster.link(sender.group.name, receiver.group.name)
    in_node = link is not None and link.transport == "node"
    inner = link if link is not None and in_node else sender.group.intra_node
    shares = smaller(*(end.split * end.strategy.num_devices for end in (sender, receiver)))
    message = size / shares
    inside = inner.latency + message / inner.rate_at(message)
    limit, latency = (link.rate_at(message), link.latency) if link is not None and not in_node else (float("inf"), 0.0)
    staged = link is not None and link.transport == "tcp"
    ends = (sender, receiver)
    slowest = reduce(larger, (_end_time(end, size, limit, message, staged=staged) for end in ends))
    across = reduce(larger, (end.group.inter_node.latency for end in ends), latency) + slowest
    return framework.hop_latency + choose(inside_node(sender, receiver, cluster), inside, across)


def _end_time(end: StageEnd, size: Bytes, limit: Number, message: Bytes, *, staged: bool) -> Seconds:
    """Return the time [s] in which an end gets its parts of the `size` bytes of every pipeline through."""
    return size / end.split * end.replicas_per_node / smaller(limit, end.node_rate(message, staged=staged))


def boundary_bytes(sender: StageEnd, model: Model, job: Job, framework: Framework, samples: int) -> Bytes:
    """Return the bytes that one copy of a stage hands over: the hidden states, once per rank that sends them whole."""
    shard = layer_shard(job, sender.strategy, samples)
    whole = shard.tokens * model.hidden * shard.bytes_per_element
    return whole * sender.strategy.num_devices / (shard.weight_split if framework.scattered_hops else shard.norm_split)


def inside_node(sender: StageEnd, receiver: StageEnd, cluster: Cluster) -> Any:
    """Tell whether every replica can have both stages in one node, whatever the other stages do."""
    if sender.group.name == receiver.group.name:
        return sender.group.num_nodes == 1
    link = cluster.link(sender.group.name, receiver.group.name)
    if link is None or link.transport != "node":
        return False
    return sender.group.num_nodes == 1 or (sender.fills_group and receiver.fills_group)
