"""What an exchange passes where it leaves a group: replicas of unlike pipelines lie on several groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.domain.cluster import Cluster, DeviceGroup
from planner.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The slowest link between groups that an exchange among all of them cannot avoid."""

    num_groups: int
    node_rate: float
    """[bytes/s] of a node, one direction, where the link leaves nodes; infinite where it stays inside them."""
    device_rate: float
    """[bytes/s] of a device, where the link stays inside nodes; infinite elsewhere."""
    latency: Seconds

    def rate(self, senders: float) -> float:
        """Return [bytes/s] of each of the `senders` of a node."""
        return min(self.device_rate, self.node_rate / senders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """Replicas on other groups, which exchange gradients with those here."""

    crossing: Crossing
    here: int
    """Replicas on this group."""


def crossing(names: Sequence[str], cluster: Cluster) -> Crossing | None:
    """Return what an exchange between the groups called `names` passes; None if they are one group or none.

    What is exchanged goes along the best tree of links between them (Prim 1957, largest rate first).
    """
    left = sorted(set(names))
    num_groups = len(left)
    if len(left) < 2:
        return None
    reached, taken = [left.pop(0)], []
    while left:
        pairs = [(_link(cluster, here, there), there) for here in reached for there in left]
        best, name = max(pairs, key=lambda pair: pair[0].rate(1.0))
        taken.append(best)
        reached.append(name)
        left.remove(name)
    return Crossing(
        num_groups=num_groups,
        node_rate=min(link.node_rate for link in taken),
        device_rate=min(link.device_rate for link in taken),
        latency=max(link.latency for link in taken),
    )


def _link(cluster: Cluster, here: str, there: str) -> Crossing:
    """Return the link between two groups: the declared one, or the slower of their networks."""
    ends = (cluster.group(here), cluster.group(there))
    link = cluster.link(here, there)
    slower = min(_network_rate(end) for end in ends)
    latency = max(end.inter_node.latency for end in ends)
    if link is None:
        return Crossing(num_groups=2, node_rate=slower, device_rate=float("inf"), latency=latency)
    if link.transport == "node":
        return Crossing(num_groups=2, node_rate=float("inf"), device_rate=link.rate, latency=link.latency)
    rate, latency = min(slower, link.rate), max(latency, link.latency)
    return Crossing(num_groups=2, node_rate=rate, device_rate=float("inf"), latency=latency)


def _network_rate(group: DeviceGroup) -> float:
    return float(group.inter_node.rate(group.num_nodes))
