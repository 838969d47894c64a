"""What launchers ask of machines: runs of nodes that are used alike, the devices of each, and which are seen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from planner.domain.cluster import Cluster, DeviceGroup
from planner.export.base import Launch, Node

VISIBLE = {
    "nvidia": "CUDA_VISIBLE_DEVICES",
    "amd": "HIP_VISIBLE_DEVICES",
    "huawei": "ASCEND_RT_VISIBLE_DEVICES",
    "intel": "HABANA_VISIBLE_MODULES",
}
"""Vendor -> variable with the devices that a process sees. Sources: CUDA C++ programming guide, CUDA environment
variables; ROCm documentation, GPU isolation techniques; CANN environment variables; Intel Gaudi documentation,
multiple workloads on a single node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Nodes with consecutive node ranks that are used alike."""

    first: int
    """Node rank of its first node."""
    nodes: tuple[Node, ...]
    groups: tuple[DeviceGroup, ...]
    """All groups with devices in such a node, in the order of the devices."""
    asked: tuple[tuple[DeviceGroup, int], ...]
    """Devices to ask of a node: those in use if they are its first ones, else all, for what is handed out is any."""
    visible: tuple[int, ...]
    """Devices that the ranks see, in the order of the ranks; empty where they are those asked for, in their order."""

    @property
    def processes(self) -> int:
        """Ranks of a node."""
        return len(self.nodes[0].devices)

    @property
    def num_asked(self) -> int:
        """Devices to ask of a node."""
        return sum(count for _, count in self.asked)

    @property
    def is_mixed(self) -> bool:
        """Whether a node has devices of several kinds."""
        return len({group.device.name for group in self.groups}) > 1

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """(variable, value) that make the i-th rank of a node see its device as the i-th."""
        vendor = self.groups[0].device.vendor or "nvidia"
        # CUDA counts the fastest device first unless told to count as nvidia-smi does.
        order = (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),) if self.is_mixed and vendor == "nvidia" else ()
        if not self.visible:
            return order
        return (*order, (VISIBLE.get(vendor, VISIBLE["nvidia"]), ",".join(map(str, self.visible))))


def in_comment(text: str) -> str:
    """Return names as they can stand in a comment: on one line, and with nothing that would end it."""
    return re.sub(r"[^\w.,:+ -]", "?", text)


def as_word(name: str) -> str:
    """Return a name as schedulers take it."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._") or "device"


def runs(launch: Launch) -> tuple[Run, ...]:
    """Return the nodes of a launch as runs, in the order of their ranks."""
    cluster, found, first = launch.file.cluster, [], 0
    for _, together in groupby(launch.nodes, key=lambda node: _use(node, cluster)):
        nodes = tuple(together)
        groups = _groups(nodes[0], cluster)
        visible = () if nodes[0].in_order else nodes[0].devices
        asked = _asked(groups, num_devices(groups) if visible else len(nodes[0].devices))
        found.append(Run(first=first, nodes=nodes, groups=groups, asked=asked, visible=visible))
        first += len(nodes)
    return tuple(found)


def num_devices(groups: tuple[DeviceGroup, ...]) -> int:
    """Return how many devices a node with these groups has."""
    return sum(group.devices_per_node for group in groups)


def _use(node: Node, cluster: Cluster) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(group.name for group in _groups(node, cluster)), node.devices


def _groups(node: Node, cluster: Cluster) -> tuple[DeviceGroup, ...]:
    """Return the groups with devices in a node: its own, or all that share their nodes, as far as they reach."""
    own = cluster.group(node.group)
    if not own.nodes:
        return (own,)
    number = int(node.name.rpartition("-")[2])
    return tuple(group for group in cluster.groups if group.nodes == own.nodes and number < group.num_nodes)


def _asked(groups: tuple[DeviceGroup, ...], count: int) -> tuple[tuple[DeviceGroup, int], ...]:
    """Return the first `count` devices by group."""
    found = []
    for group in groups:
        taken = min(count, group.devices_per_node)
        if taken:
            found.append((group, taken))
        count -= taken
    return tuple(found)
