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
from planner.units import Bytes, Seconds, choose, larger, smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnd:
    """One end of a joint: where a stage's replicas sit."""

    group: DeviceGroup
    strategy: Strategy
    num_replicas: int

    @property
    def replicas_per_node(self) -> Number:
        """Replicas whose transfers share the adapters of one node; below 1 where a replica spans nodes."""
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

    @property
    def node_rate(self) -> Number:
        """[bytes/s] at which the replicas of one node together reach the network."""
        network, nodes = self.group.inter_node, self.group.num_nodes
        return smaller(network.rate(nodes), self.senders * device_rate(network, self.group.devices_per_node, nodes))

    @property
    def fills_group(self) -> bool:
        """Whether the stage's replicas take every device of the group."""
        return self.num_replicas * self.strategy.num_devices == self.group.num_devices


def hop_time(
    sender: StageEnd, receiver: StageEnd, cluster: Cluster, model: Model, job: Job, framework: Framework, samples: int
) -> Seconds:
    """Return the time [s] of handing one micro-batch of `samples` from one stage to the next, one way.

    All replicas of a stage hand over at the same time and share the adapters of their nodes; each end must get its
    part through. A tensor group that is sequence parallel sends each element once.
    """
    size = _boundary_bytes(sender, model, job, framework, samples)
    link = cluster.link(sender.group.name, receiver.group.name)
    in_node = link is not None and link.transport == "node"
    inner = link if link is not None and in_node else sender.group.intra_node
    shares = smaller(sender.strategy.num_devices, receiver.strategy.num_devices)
    inside = inner.latency + size / shares / inner.rate
    limit, latency = (link.rate, link.latency) if link is not None and not in_node else (float("inf"), 0.0)
    ends = (sender, receiver)
    slowest = reduce(larger, (size * end.replicas_per_node / smaller(limit, end.node_rate) for end in ends))
    across = reduce(larger, (end.group.inter_node.latency for end in ends), latency) + slowest
    return framework.hop_latency + choose(inside_node(sender, receiver, cluster), inside, across)


def _boundary_bytes(sender: StageEnd, model: Model, job: Job, framework: Framework, samples: int) -> Bytes:
    """Return the bytes that one replica hands over: the hidden states, once per rank that sends them whole."""
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
