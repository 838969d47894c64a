"""The groups exist and have the devices, with every tensor group inside one node."""

from __future__ import annotations

from collections import Counter

from planner.checks.base import Check, Context
from planner.checks.packing import is_packable
from planner.domain.cluster import DeviceGroup
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
    """Return what is wrong with the use of `group`: too large a degree, too many devices, or torn tensor groups."""
    blocks: Counter[int] = Counter()
    problems = []
    for place, stage in context.places("strategy.tp"):
        tp = stage.strategy.degree("tp")
        if stage.group != group.name or tp < 1:
            continue
        if tp > group.devices_per_node:
            message = f"is {tp}; must be at most {group.devices_per_node}, the devices of a node of group {group.name}"
            problems.append(Problem(place, message))
        blocks[tp] += context.plan.num_replicas * max(0, stage.strategy.num_devices // tp)
    used = sum(size * count for size, count in blocks.items())
    if used > group.num_devices:
        message = f"the stages use {used} devices of group {group.name}; it has {group.num_devices}"
        return [*problems, Problem("stages", message)]
    if not problems and not is_packable(blocks, group.num_nodes, group.devices_per_node):
        parts = " and ".join(f"{count} of {size}" for size, count in sorted(blocks.items(), reverse=True))
        message = (
            f"the tensor groups on group {group.name} ({parts} devices) must each stay inside one node; "
            f"{group.num_nodes} nodes of {group.devices_per_node} devices cannot hold them"
        )
        return [Problem("stages", message)]
    return problems


DEVICES = Check(name="devices", summary="groups have the devices, each tensor group inside one node", check=_check)
