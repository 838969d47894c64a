"""Time of communication: alpha-beta on the links that the ranks span (Thakur et al. 2005)."""

from __future__ import annotations

from planner.domain.cluster import LARGE, DeviceGroup, Network
from planner.domain.model import Number
from planner.units import Bytes, Seconds, choose, larger, logarithm2, smaller

ROUNDS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "ring": 1.0, "all_to_all": 1.0}
"""[-] times that each rank sends the collective's size, up to (n-1)/n."""


def device_rate(network: Network, devices_per_node: Number, num_nodes: Number, message: Bytes = LARGE) -> Number:
    """Return [bytes/s] that one device of a node may send alone: its share of the adapters, or one adapter.

    Where adapters are unlike it is the slowest: a step waits for the device behind that one.
    """
    rails = larger(1.0, network.rails / devices_per_node)
    share = network.rate(num_nodes, message) * smaller(1.0, rails / network.rails * network.evenness)
    return smaller(share, network.node_rate(num_nodes, 1, message))


def ring_rate(group: DeviceGroup, ranks: Number, inner: Number, message: Bytes = LARGE) -> Number:
    """Return [bytes/s] per rank of a ring of `ranks`, each `inner` devices apart from the next, with such messages.

    The ring enters and leaves a node once. Where several rings share a node, each of its members brings its own
    share of the adapters, so a ring with more members in a node has more of the network: it leaves the node from as
    many of them as there are adapters.
    """
    members = larger(1, smaller(ranks, group.devices_per_node // inner))
    num_nodes = -(-ranks * inner // group.devices_per_node)
    rings = larger(1.0, smaller(inner, group.devices_per_node / members))
    senders = rings * smaller(members, group.inter_node.rails)
    node_rate = group.inter_node.node_rate(num_nodes, senders, message)
    alone = members * device_rate(group.inter_node, group.devices_per_node, num_nodes, message)
    across = smaller(alone, node_rate / rings)
    inside = group.intra_node.collective_rate(members, inner, message)
    across = choose(members == 1, across, smaller(inside, across))
    return choose(members == ranks, inside, across)


def neighbour_rate(group: DeviceGroup, ranks: Number, inner: Number, message: Bytes = LARGE) -> Number:
    """Return [bytes/s] at which each of `ranks`, `inner` devices apart, sends to the next.

    Where the ring leaves the node, one device of each ring sends alone, over its own share of the adapters.
    """
    num_nodes = -(-ranks * inner // group.devices_per_node)
    alone = device_rate(group.inter_node, group.devices_per_node, num_nodes, message)
    rings = smaller(inner, group.devices_per_node)
    inside = group.intra_node.collective_rate(smaller(ranks, group.devices_per_node), inner, message)
    across = smaller(inside, smaller(alone, group.inter_node.node_rate(num_nodes, rings, message) / rings))
    return choose(ranks * inner <= group.devices_per_node, inside, across)


def all_to_all_rate(group: DeviceGroup, ranks: Number, inner: Number, message: Bytes = LARGE) -> Number:
    """Return [bytes/s] at which each of `ranks`, `inner` devices apart, sends to all others.

    Of the r - 1 parts that a rank sends, those to the m - 1 ranks of its node take the link, the others the adapters,
    which all devices of the node use at once; the slower of the two decides.
    """
    members = larger(1, smaller(ranks, group.devices_per_node // inner))
    num_nodes = -(-ranks * inner // group.devices_per_node)
    senders = smaller(members * inner, group.devices_per_node)
    alone = device_rate(group.inter_node, group.devices_per_node, num_nodes, message)
    outside = smaller(alone, group.inter_node.node_rate(num_nodes, senders, message) / senders)
    inside = group.intra_node.collective_rate(members, inner, message)
    slowest = larger((members - 1) / inside, larger(ranks - members, 1) / outside)
    return choose(members == ranks, inside, (ranks - 1) / slowest)


def collective_rate(op: str, group: DeviceGroup, ranks: Number, inner: Number, size: Bytes) -> Number:
    """Return [bytes/s] per rank that `op` reaches with `size` bytes over `ranks`, each `inner` devices apart.

    In every step of any of them a message is one of as many parts as there are ranks.
    """
    rates = {"ring": neighbour_rate, "all_to_all": all_to_all_rate}
    return rates.get(op, ring_rate)(group, ranks, inner, size / ranks)


def collective_time(
    op: str,
    size: Number,
    ranks: Number,
    rate: Number,
    latency: Seconds,
    *,
    start: Seconds = 0.0,
    beside: Seconds = 0.0,
) -> Seconds:
    """Return the time [s] that ranks wait for a collective of `size` bytes over `ranks` at `rate` bytes/s.

    t = start + latency log2(n) + rounds size (n-1)/n / rate, and zero for one rank: the start is what launching it and
    waiting for the last rank to come take. A ring takes n - 1 steps and pays the latency in each. Each step hides
    behind one of n parts of a computation that takes `beside` seconds, the last of which has no step beside it.
    """
    share = (ranks - 1) / ranks
    steps = ranks - 1 if op == "ring" else logarithm2(ranks)
    moved = moved_bytes(op, size, ranks) / rate
    return start * (ranks > 1) + latency * steps + larger(moved - share * beside, 0.0)


def moved_bytes(op: str, size: Number, ranks: Number) -> Bytes:
    """Return the bytes that each of `ranks` sends in a collective of `size` bytes: rounds size (n-1)/n."""
    return ROUNDS[op] * size * ((ranks - 1) / ranks)
