"""Where the stages of a run on unlike devices lie, by the order of its ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from planner.accuracy.degrees import Degrees
from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.domain.cluster import DeviceGroup

_ORDER = re.compile(r"rank order:? ((?:(?:pp|dp|cp|tp)[, ]*)+)")

Node = tuple[int, int]
"""Kind of device, and number of the node among those of all kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What one stage lies on."""

    num_layers: int
    groups: tuple[DeviceGroup, ...]
    """Its nodes, once with each kind of device that they hold, and with the slowest of their links: a stage waits for
    the slowest of its replicas, and a ring for the slowest of its links. Stages on the same nodes name them alike."""


def find_places(
    run: Run, kinds: Sequence[DeviceGroup], degrees: Degrees, layers: Sequence[int], chunks: int
) -> tuple[Place, ...]:
    """Return where each stage lies, ranks being numbered through the nodes of `kinds` in their order.

    Raises:
        NotJudgedError: it is not said how ranks are numbered, or a stage has several runs of layers.

    """
    if sum(group.num_devices for group in kinds) != run.gpus:
        raise NotJudgedError("unlike devices: some nodes are not full")
    if chunks > 1:
        raise NotJudgedError("unlike devices: virtual stages are not modelled there")
    nodes = [
        (kind, first + index // group.devices_per_node)
        for kind, (group, first) in enumerate(zip(kinds, _first_nodes(kinds), strict=True))
        for index in range(group.num_devices)
    ]
    stages = _stages(run, degrees)
    return tuple(
        Place(
            num_layers=held,
            groups=_groups(kinds, sorted({nodes[rank] for rank, at in enumerate(stages) if at == stage})),
        )
        for stage, held in enumerate(layers)
    )


def _first_nodes(kinds: Sequence[DeviceGroup]) -> list[int]:
    return [sum(group.num_nodes for group in kinds[:index]) for index in range(len(kinds))]


def _stages(run: Run, degrees: Degrees) -> list[int]:
    """Return the stage of each rank: ``rank order pp, dp, tp`` means that tensor ranks are neighbours."""
    found = _ORDER.search(run.placement)
    order = re.findall(r"\w+", found[1]) if found else []
    sizes = {"pp": degrees.stages, "dp": degrees.replicas, "cp": degrees.context, "tp": degrees.tensor}
    if any(size > 1 and order.count(axis) != 1 for axis, size in sizes.items()):
        raise NotJudgedError("unlike devices: the order of ranks is not in the column placement")
    inner = prod(sizes[axis] for axis in order[order.index("pp") + 1 :]) if "pp" in order else 1
    return [rank // inner % degrees.stages for rank in range(prod(sizes.values()))]


def _groups(kinds: Sequence[DeviceGroup], nodes: Sequence[Node]) -> tuple[DeviceGroup, ...]:
    """Return the group of each kind on `nodes`, all with the slowest of their links."""
    present = [kinds[kind] for kind in dict.fromkeys(kind for kind, _ in nodes)]
    number = len(nodes)
    name = f"nodes {_text(node for _, node in nodes)}"
    return tuple(
        replace(
            group,
            name=f"{name}: {group.device.name}",
            num_nodes=number,
            intra_node=min((one.intra_node for one in present), key=lambda link: float(link.rate)),
            inter_node=min((one.inter_node for one in present), key=lambda network: float(network.rate(number))),
        )
        for group in present
    )


def _text(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))
