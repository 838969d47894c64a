"""Time of communication: alpha-beta on the links that the ranks span (Thakur et al. 2005)."""

from __future__ import annotations

from math import ceil

from planner.domain.cluster import DeviceGroup, Network
from planner.domain.model import Number
from planner.units import Seconds, logarithm2

ROUNDS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "ring": 1.0}
"""[-] times that each byte of the tensor crosses a ring, up to (n-1)/n."""


def device_rate(network: Network, devices_per_node: int, num_nodes: int) -> float:
    """Return [bytes/s] that one device of a node may send alone: its share of the adapters, or one adapter."""
    rails = max(1.0, network.rails / devices_per_node)
    return network.rate(num_nodes) * min(1.0, rails / network.rails)


def ring_rate(group: DeviceGroup, ranks: int, inner: int) -> float:
    """Return [bytes/s] per rank of a ring of `ranks`, each rank being `inner` devices apart from the next.

    The ring enters and leaves a node once. Where several rings share a node, each of its members brings its own
    share of the adapters, so a ring with more members in a node has more of the network.
    """
    members = max(1, min(ranks, group.devices_per_node // inner))
    if members == ranks:
        return group.intra_node.rate
    num_nodes = ceil(ranks * inner / group.devices_per_node)
    node_rate = group.inter_node.rate(num_nodes)
    rings = max(1.0, min(float(inner), group.devices_per_node / members))
    alone = members * device_rate(group.inter_node, group.devices_per_node, num_nodes)
    rate = min(alone, node_rate / rings)
    return rate if members == 1 else min(group.intra_node.rate, rate)


def collective_time(op: str, size: Number, ranks: int, rate: float, latency: Seconds) -> Seconds:
    """Return the time [s] of a collective of `size` bytes over `ranks` at `rate` bytes/s.

    t = latency log2(n) + rounds size (n-1)/n / rate.
    """
    if ranks == 1:
        return 0.0
    return latency * logarithm2(ranks) + ROUNDS[op] * size * (ranks - 1) / ranks / rate
