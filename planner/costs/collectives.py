"""Time of communication: alpha-beta on the links that the ranks span (Thakur et al. 2005)."""

from __future__ import annotations

from planner.domain.cluster import DeviceGroup, Network
from planner.domain.model import Number
from planner.units import Seconds, choose, larger, logarithm2, smaller

ROUNDS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "ring": 1.0}
"""[-] times that each byte of the tensor crosses a ring, up to (n-1)/n."""


def device_rate(network: Network, devices_per_node: Number, num_nodes: Number) -> Number:
    """Return [bytes/s] that one device of a node may send alone: its share of the adapters, or one adapter."""
    rails = larger(1.0, network.rails / devices_per_node)
    return network.rate(num_nodes) * smaller(1.0, rails / network.rails)


def ring_rate(group: DeviceGroup, ranks: Number, inner: Number) -> Number:
    """Return [bytes/s] per rank of a ring of `ranks`, each rank being `inner` devices apart from the next.

    The ring enters and leaves a node once. Where several rings share a node, each of its members brings its own
    share of the adapters, so a ring with more members in a node has more of the network.
    """
    members = larger(1, smaller(ranks, group.devices_per_node // inner))
    num_nodes = -(-ranks * inner // group.devices_per_node)
    node_rate = group.inter_node.rate(num_nodes)
    rings = larger(1.0, smaller(inner, group.devices_per_node / members))
    alone = members * device_rate(group.inter_node, group.devices_per_node, num_nodes)
    across = smaller(alone, node_rate / rings)
    across = choose(members == 1, across, smaller(group.intra_node.rate, across))
    return choose(members == ranks, group.intra_node.rate, across)


def collective_time(
    op: str, size: Number, ranks: Number, rate: Number, latency: Seconds, start: Seconds = 0.0
) -> Seconds:
    """Return the time [s] of a collective of `size` bytes over `ranks` at `rate` bytes/s, zero for one rank.

    t = start + latency log2(n) + rounds size (n-1)/n / rate; the start is what launching it and waiting for the last
    rank to come take, however many there are.
    """
    return start * (ranks > 1) + latency * logarithm2(ranks) + ROUNDS[op] * size * (ranks - 1) / ranks / rate
