"""The tree of links above the devices of one group, or of two, and the seconds that bytes take in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.domain.cluster import Cluster, DeviceGroup, Network
from planner.units import Bytes

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of the tree: a part of a node, a node, a rack, ..., and the link inside it."""

    here: int
    """Devices of the first group in one unit."""
    there: int
    """Devices of the second group in one unit."""
    rate: float
    """[bytes/s] one direction, of large messages."""
    each: bool
    """Whether every device has that rate, as inside a node, or all of a node share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What is between the devices of two groups, which may be the same."""

    units: tuple[Unit, ...]
    """Those that hold devices of both, smallest first."""
    beyond: float
    """[bytes/s] of a node, where no unit holds both devices."""

    def seconds(self, here: Span, there: Span, size: Any, streams: int) -> float:
        """Return the sum of bytes / rate over pairs of blocks, at the rate of the smallest unit that holds both.

        `size` are the bytes of each pair, which travel between `streams` pairs of devices.
        """
        inverse = np.full(len(here.low), 1 / self.beyond)
        for unit in reversed(self.units):
            number = here.low // unit.here
            inside = number == here.high // unit.here
            inside &= (number == there.low // unit.there) & (number == there.high // unit.there)
            inverse[inside] = 1 / (unit.rate * (streams if unit.each else 1))
        return float(np.sum(size * inverse))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lowest and the highest device of each of several blocks, in the count of their group."""

    low: Numbers
    high: Numbers

    def at(self, which: Any) -> Span:
        """Return those of some of the blocks."""
        return Span(low=self.low[which], high=self.high[which])


def tree(cluster: Cluster, first: str, second: str) -> Tree:
    """Return what is between the devices of two groups; on nodes of their own they meet at the top alone."""
    here, there = cluster.group(first), cluster.group(second)
    link = cluster.link(first, second)
    slower = min(_network_rate(group.inter_node, group.num_nodes) for group in (here, there))
    if here.name != there.name and (not here.nodes or here.nodes != there.nodes):
        return Tree(units=(), beyond=slower if link is None else min(slower, float(link.rate)))
    inside = here.intra_node if link is None else link
    node = Unit(here=here.devices_per_node, there=there.devices_per_node, rate=float(inside.rate), each=True)
    parts = _parts(here) if here.name == there.name else ()
    return Tree(units=(*parts, node, *_tiers(here, there)), beyond=slower)


def _parts(group: DeviceGroup) -> tuple[Unit, ...]:
    """Return the levels below the node."""
    return tuple(
        Unit(here=level.num_devices, there=level.num_devices, rate=float(level.link.rate), each=True)
        for level in group.intra_node.levels
    )


def _tiers(here: DeviceGroup, there: DeviceGroup) -> tuple[Unit, ...]:
    """Return the levels above the node."""
    ends = (here, there)
    spans = sorted({tier.num_nodes for group in ends for tier in group.inter_node.tiers})
    return tuple(
        Unit(
            here=nodes * here.devices_per_node,
            there=nodes * there.devices_per_node,
            rate=min(_network_rate(group.inter_node, nodes) for group in ends),
            each=False,
        )
        for nodes in spans
        if nodes > 1
    )


def _network_rate(network: Network, num_nodes: int) -> float:
    """Return [bytes/s] of a node among `num_nodes`."""
    return float(network.rate(num_nodes))


def bytes_between(copies: tuple[int, int], size: Bytes) -> list[tuple[int, int, Bytes]]:
    """Return (copy of one stage, copy of the next, bytes) where copies divide micro-batches of `size` bytes.

    Each copy has an equal run of the samples, so that two of them share what both runs hold.
    """
    first, second = copies
    shares = [
        (here, there, min((here + 1) * second, (there + 1) * first) - max(here * second, there * first))
        for here in range(first)
        for there in range(second)
    ]
    return [(here, there, size * share / (first * second)) for here, there, share in shares if share > 0]
