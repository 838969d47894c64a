"""The groups exist and have the devices, with every replica of a stage inside one node or on whole nodes."""

from __future__ import annotations

from collections import Counter

from planner.checks.base import Check, Context, places
from planner.checks.packing import is_packable
from planner.domain.cluster import DeviceGroup
from planner.domain.plan import Strategy
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    known = ", ".join(group.name for group in context.cluster.groups)
    problems = [
        Problem(place, f"is {stage.group}, which the cluster does not have; it has {known}")
        for place, stage in context.places("group")
        if context.group(stage) is None
    ]
    for group in context.cluster.groups:
        problems.extend(_group_problems(context, group))
    return tuple(problems)


def _group_problems(context: Context, group: DeviceGroup) -> list[Problem]:
    """Return what is wrong with the use of `group`: too wide, too many devices, or torn by the ends of nodes."""
    blocks: Counter[int] = Counter()
    problems = []
    for prefix, pipeline in context.pipelines():
        for place, stage in places(pipeline, prefix, "strategy"):
            if stage.group != group.name or any(degree < 1 for _, degree in stage.strategy.degrees):
                continue
            problems.extend(_width_problems(place, stage.strategy, group))
            num_devices = stage.strategy.num_devices
            size = min(num_devices, group.devices_per_node)
            blocks[size] += pipeline.num_replicas * stage.split * (num_devices // size)
    used = sum(size * count for size, count in blocks.items())
    if used > group.num_devices:
        message = f"the stages use {used} devices of group {group.name}; it has {group.num_devices}"
        return [*problems, Problem("stages", message)]
    if not problems and not is_packable(blocks, group.num_nodes, group.devices_per_node):
        parts = " and ".join(f"{count} of {size}" for size, count in sorted(blocks.items(), reverse=True))
        message = (
            f"the replicas of stages on group {group.name} ({parts} devices) must each stay inside one node; "
            f"{group.num_nodes} nodes of {group.devices_per_node} devices cannot hold them"
        )
        return [Problem("stages", message)]
    return problems


def _width_problems(place: str, strategy: Strategy, group: DeviceGroup) -> list[Problem]:
    """Return why one replica of a stage does not go onto nodes of `group`: inside one, or on several whole ones.

    The tensor ranks are the innermost, and stay inside a node in either case.
    """
    tp, width, node = strategy.degree("tp"), strategy.num_devices, group.devices_per_node
    if tp > node:
        return [Problem(f"{place}.tp", f"is {tp}; must be at most {node}, the devices of a node of group {group.name}")]
    if width > node and (width % node or node % tp):
        message = (
            f"takes {width} devices, tp={tp} of them side by side; more than a node must be whole nodes of {node}"
            f" devices on group {group.name}, with no tensor group across two"
        )
        return [Problem(place, message)]
    return []


DEVICES = Check(
    code="PL105",
    name="devices",
    summary="groups have the devices, each replica inside a node or on whole ones",
    why="Ranks without a device never start, and a tensor group that straddles nodes unevenly has no fast link.",
    check=_check,
)
