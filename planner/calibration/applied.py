"""Measured runs on the machine that a cluster file describes: its devices, links and calibrated constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.accuracy.setting import Setting
from planner.domain.cluster import Cluster, DeviceGroup


def on_cluster(cluster: Cluster) -> Callable[[Setting], Setting]:
    """Return what puts a run on the group of `cluster` that has its device; other runs stay as they are.

    Bandwidths that were measured in the job itself stay, too.
    """
    groups = {group.device.name: group for group in reversed(cluster.groups)}

    def moved(group: DeviceGroup) -> DeviceGroup:
        other = groups.get(group.device.name)
        return _moved(group, other) if other else group

    def placed(item: Setting) -> Setting:
        if not any(group.device.name in groups for group in item.groups):
            return item
        framework = item.layout.framework
        if cluster.calibration and cluster.calibration.framework == item.profile:
            named = replace(framework, name=item.profile)
            framework = replace(cluster.calibration.applied(named), name=framework.name)
        return item.changed(framework=framework, group=moved)

    return placed


def _moved(run: DeviceGroup, group: DeviceGroup) -> DeviceGroup:
    """Return the group of a run with the devices and links of `group`."""
    if run.inter_node.measured or run.num_nodes == 1:
        return replace(run, device=group.device)
    return replace(run, device=group.device, intra_node=group.intra_node, inter_node=group.inter_node)
