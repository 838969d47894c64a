"""The nodes of a plan as launchers count them: in the order of their ranks, node by node."""

from __future__ import annotations

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
    return tuple(
        Node(
            name=node.node,
            group=node.ranks[0].group,
            device=node.ranks[0].device,
            first_rank=node.ranks[0].rank,
            devices=tuple(rank.device_index for rank in node.ranks),
        )
        for node in found
    )


def _why(node: Slots) -> str:
    """Return why the ranks of a node cannot be written."""
    here, there = next((here, there) for here, there in pairwise(node.ranks) if there.rank > here.rank + 1)
    return (
        f"{node.node} has ranks {here.rank} and {there.rank}, but none between, and launchers count node by node;"
        " --to rank-table tells where each rank runs"
    )
