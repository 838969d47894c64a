"""The nodes in the order of their ranks, as DeepSpeed and Open MPI read them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from planner.errors import CannotExpress
from planner.export.base import Exporter
from planner.specs.plan import PlanFile

if TYPE_CHECKING:
    from planner.placement import Slots

SHOWN = 3
"""Nodes that a refusal names."""


def _text(file: PlanFile) -> str:
    """Return ``node slots=N``, one node a line; a launcher gives the first N ranks to the first node, and so on.

    Comments tell the order of the ranks, and where the i-th rank of a node does not run on its i-th device.

    Raises:
        CannotExpress: the ranks of a node do not follow one another.
    """
    from planner.placement import place, slots

    placed = place(file.plan, file.cluster, file.model, file.job)
    nodes = slots(placed.ranks)
    torn = [node for node in nodes if not node.is_run]
    if torn:
        raise CannotExpress("hostfile", [_why(node) for node in torn[:SHOWN]])
    lines = [f"# ranks in the order {placed.order}"]
    for node in nodes:
        devices = [rank.device_index for rank in node.ranks]
        if devices != list(range(len(devices))):
            lines.append(f"# {node.node}: ranks in their order on devices {','.join(map(str, devices))}")
        lines.append(f"{node.node} slots={len(devices)}")
    return "\n".join(lines) + "\n"


def _why(node: Slots) -> str:
    """Return why the ranks of a node cannot be written."""
    here, there = next((here, there) for here, there in pairwise(node.ranks) if there.rank > here.rank + 1)
    return (
        f"{node.node} has ranks {here.rank} and {there.rank}, but none between, and launchers count node by node;"
        " --to rank-table tells where each rank runs"
    )


HOSTFILE = Exporter(name="hostfile", summary="`node slots=N` in the order of the ranks, for launchers", text=_text)
