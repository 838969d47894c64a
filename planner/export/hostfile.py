"""The nodes in the order of their ranks, as DeepSpeed and Open MPI read them."""

from __future__ import annotations

from planner.export.base import Exporter, Part
from planner.export.nodes import nodes_in_order
from planner.specs.plan import PlanFile


def _parts(file: PlanFile) -> tuple[Part, ...]:
    """Return ``node slots=N``, one node a line; a launcher gives the first N ranks to the first node, and so on.

    Comments tell the order of the ranks, and where the i-th rank of a node does not run on its i-th device.

    Raises:
        CannotExpress: the ranks of a node do not follow one another.
    """
    order, nodes = nodes_in_order(file, "hostfile")
    lines = [f"# ranks in the order {order}"]
    for node in nodes:
        if not node.in_order:
            lines.append(f"# {node.name}: ranks in their order on devices {','.join(map(str, node.devices))}")
        lines.append(f"{node.name} slots={len(node.devices)}")
    return (Part(name="hostfile", text="\n".join(lines) + "\n"),)


HOSTFILE = Exporter(name="hostfile", summary="`node slots=N` in the order of the ranks, for launchers", parts=_parts)
