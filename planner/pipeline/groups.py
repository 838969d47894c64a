"""Which groups of a cluster the stages of a layout may go to, and which stand for those of a plan for another one."""

from __future__ import annotations

import re

from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.plan import Plan
from planner.specs.catalog import simple
from planner.specs.layout import Layout


def able(layout: Layout, cluster: Cluster, position: int) -> list[int]:
    """Return the groups that have the kind of device of a stage; all where it is not said, or none has it."""
    found = named(layout.stage_devices[position], cluster) if layout.stage_devices else []
    return found or list(range(len(cluster.groups)))


def named(kind: str, cluster: Cluster) -> list[int]:
    """Return the groups that a kind of device means: by their name, else by their device, else by how that begins."""
    # A name that ends in a number may be the second run of nodes with that device.
    words = (simple(kind), simple(re.sub(r"-[0-9]+$", "", kind)))
    names = [group.name for group in cluster.groups]
    devices = [group.device.name for group in cluster.groups]
    for listed in (names, devices, [name.partition("-")[0] for name in devices]):
        for word in words:
            if found := [index for index, name in enumerate(listed) if simple(name) == word]:
                return found
    return []


def untold(layout: Layout, cluster: Cluster) -> str:
    """Return that stages were put on groups where others could have been meant; empty if it was said, or there is one.

    The groups are taken in the order of the cluster's file.
    """
    if len(cluster.groups) == 1:
        return ""
    kinds = {kind: named(kind, cluster) for kind in layout.stage_devices}
    strangers = ", ".join(kind for kind, groups in kinds.items() if not groups)
    if kinds and not strangers and all(len(groups) == 1 for groups in kinds.values()):
        return ""
    reason = "it does not say which ranks run on which of the unlike nodes"
    if strangers:
        reason = f"it names nodes or devices that {cluster.name} does not have ({strangers})"
    return (
        f"{reason}; stages fill the groups in the order of the cluster: {', '.join(one.name for one in cluster.groups)}"
    )


def stand_ins(plan: Plan, old: Cluster, new: Cluster) -> list[tuple[DeviceGroup, DeviceGroup]]:
    """Return (group, what stands for it) of the groups that a plan for `old` uses and `new` does not have.

    Groups of as many stand for one another: such with the same device first, else in their order.
    """
    missing = [group for group in old.groups if group.name not in {one.name for one in new.groups}]
    free = [group for group in new.groups if group.name not in {one.name for one in old.groups}]
    if len(missing) != len(free):
        return []
    pairs = []
    for is_alike in (True, False):
        for mine in [*missing]:
            found = next((other for other in free if not is_alike or other.device.name == mine.device.name), None)
            if found:
                pairs.append((mine, found))
                missing.remove(mine)
                free.remove(found)
    used = {stage.group for stage in plan.all_stages}
    return [(mine, other) for mine, other in pairs if mine.name in used]
