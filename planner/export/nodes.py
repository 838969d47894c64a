"""The nodes of a plan as launchers count them: in the order of their ranks, node by node."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.errors import CannotExpress
from planner.export.base import Node
from planner.specs.plan import PlanFile

if TYPE_CHECKING:
    from planner.placement import Placement, Slots

SHOWN = 3
"""Nodes that a refusal names."""


def nodes_in_order(file: PlanFile, target: str) -> tuple[str, tuple[Node, ...]]:
    """Return the order in which ranks are counted (`planner.placement.ranks.ORDERS`), and the nodes in it.

    Raises:
        CannotExpress: the ranks of a node do not follow one another.
    """
    from planner.placement import place

    placed = place(file.plan, file.cluster, file.model, file.job)
    return placed.order, nodes_of(placed, target)


def nodes_of(placed: Placement, target: str) -> tuple[Node, ...]:
    """Return the nodes of a placement in the order of their ranks.

    Raises:
        CannotExpress: the ranks of a node do not follow one another.
    """
    from planner.placement import slots

    found = slots(placed.ranks)
    torn = [node for node in found if not node.is_run]
    if torn:
        raise CannotExpress(target, [_why(node) for node in torn[:SHOWN]])
    hosts = [_host(node.node) for node in found]
    if twice := next((name for name, number in Counter(hosts).items() if number > 1), None):
        reason = f"two nodes would be called {twice}; give their groups names that differ by more than blanks"
        raise CannotExpress(target, [reason])
    return tuple(
        Node(
            name=host,
            group=node.ranks[0].group,
            device=node.ranks[0].device,
            first_rank=node.ranks[0].rank,
            devices=tuple(rank.device_index for rank in node.ranks),
        )
        for node, host in zip(found, hosts, strict=True)
    )


def _host(name: str) -> str:
    """Return the name of a node as hostfiles and scripts have it: one word on one line."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", "-", name)


def _why(node: Slots) -> str:
    """Return why the ranks of a node cannot be written."""
    here, there = next((here, there) for here, there in pairwise(node.ranks) if there.rank > here.rank + 1)
    return (
        f"{node.node} has ranks {here.rank} and {there.rank}, but none between, and launchers count node by node;"
        " --to rank-table tells where each rank runs"
    )
