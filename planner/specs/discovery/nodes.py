"""Lists of nodes to groups of like nodes, and what is near what to tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.machines import Node, Nodes, Topology
from planner.specs.discovery.devices import Kind, Note, kind

RACK_LINK = "nvl72"
"""Link whose node is all that one NVLink fabric joins."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes with the same devices; a unit is a node as it is planned: one, or those that one NVLink fabric joins."""

    kinds: tuple[Kind, ...]
    units: tuple[frozenset[str], ...]


def alike(
    listed: tuple[str, Nodes], topology: Topology | None, note: Note, named: str | None, seen: Sequence[Kind]
) -> list[Alike]:
    """Return the nodes of a list (origin, nodes) by their devices, in its order.

    Raises:
        SpecError: a device is not known.

    """
    place, nodes = listed
    sets: dict[tuple[Any, ...], list[Node]] = {}
    for node in nodes.nodes:
        sets.setdefault(tuple((one.name, one.count, round(one.memory_gib)) for one in node.devices), []).append(node)
    found: dict[tuple[tuple[str, int], ...], Alike] = {}
    for members in sets.values():
        kinds = tuple(kind(one, place, note, named, seen) for one in members[0].devices)
        for one in _units(kinds, members, topology, note):
            key = tuple((one.row.device.name, one.count) for one in one.kinds)
            before = found.get(key)
            found[key] = Alike(one.kinds, (*before.units, *one.units)) if before else one
    return list(found.values())


def _units(kinds: tuple[Kind, ...], members: Sequence[Node], topology: Topology | None, note: Note) -> list[Alike]:
    """Return the nodes as they are, or joined by NVLink where the device is made for that."""
    names = frozenset(node.name for node in members)
    single = [Alike(kinds, tuple(frozenset({node.name}) for node in members))]
    if len(kinds) > 1 or kinds[0].row.intra_node != RACK_LINK:
        return single
    domains = [part & names for part in (topology.domains if topology else ()) if part & names]
    if frozenset().union(*domains) != names:
        note(
            f"nodes of {kinds[0].row.device.name} are joined by NVLink in racks, which the list does not show: "
            "describe a rack as one node"
        )
        return single
    by_size: dict[int, list[frozenset[str]]] = {}
    for part in domains:
        by_size.setdefault(len(part), []).append(part)
    note(f"nodes of {kinds[0].row.device.name} that one NVLink fabric joins are written as one node")
    one = kinds[0]
    return [Alike((Kind(one.row, one.field, one.count * size),), tuple(parts)) for size, parts in by_size.items()]


def tiers(group: Alike, topology: Topology | None, where: str, note: Note) -> list[dict[str, Any]]:
    """Return the tiers above a group's nodes; what a switch passes on, no list tells."""
    found: list[dict[str, Any]] = []
    for level in topology.levels if topology else ():
        sizes = [sum(unit <= part for unit in group.units) for part in level.parts]
        used = sorted({size for size in sizes if size})
        outside = len(group.units) - sum(sizes)
        if 0 < outside < len(group.units):
            note(f"{where}: {outside} of {len(group.units)} nodes are in no {level.name} of the topology")
        largest = used[-1] if used else 0
        if largest < 2 or largest >= len(group.units) or (found and largest <= found[-1]["nodes"]):
            continue
        if len(used) > 1:
            note(f"{where}: a {level.name} has {used[0]} to {largest} of these nodes; {largest} is written")
        found.append({"name": level.name, "nodes": largest, "oversubscription": 1.0})
    if found:
        note(
            f"{where}: the topology has no rates, so no loss above the {found[0]['name']} is assumed: "
            "edit oversubscription"
        )
    return found
