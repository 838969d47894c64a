"""What no single field of a cluster can tell: names that must be known or differ, networks that must exist.

The rules read the values as they are written, whatever their shape, so that they report beside all other problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from planner.errors import SpecError
from planner.specs import catalog
from planner.specs.measured import measured_rules
from planner.specs.problems import Found, nearest


def rules(value: Any) -> Iterator[Found]:
    """Find what is wrong between the fields of a cluster."""
    groups = _entries(value, "groups")
    names = [name_of(group) for _, group in groups]
    yield from _duplicates(groups, names)
    yield from _links_known(value, [name for name in names if name])
    several = len(groups) > 1
    for index, group in groups:
        yield from _networks(index, group, several=several)
        yield from _tiers(index, group)
        yield from _levels(index, group)
        yield from measured_rules(index, group)
    yield from _shared(value, groups)
    yield from _calibrated(value, groups)


def name_of(group: dict[str, Any]) -> str:
    """Return the name of a group as written: its own, or its device's; empty if neither can be told."""
    own, device = group.get("name"), group.get("device")
    if isinstance(own, str):
        return own
    name = (device.get("name") or device.get("device")) if isinstance(device, dict) else device
    return (_row_name(name) or name) if isinstance(name, str) and own is None else ""


def _row_name(name: str) -> str:
    row = _row(name)
    return row.device.name if row else ""


def _row(name: object) -> catalog.DeviceRow | None:
    try:
        return catalog.device_row(name) if isinstance(name, str) else None
    except SpecError:
        return None


def _entries(value: Any, key: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the entries of a list that are mappings, with their indices."""
    items = value.get(key) if isinstance(value, dict) else None
    return (
        [(index, item) for index, item in enumerate(items) if isinstance(item, dict)] if isinstance(items, list) else []
    )


def _duplicates(groups: list[tuple[int, dict[str, Any]]], names: list[str]) -> Iterator[Found]:
    for position, (index, _) in enumerate(groups):
        if names[position] and names[position] in names[:position]:
            first = groups[names.index(names[position])][0]
            yield (
                ("groups", index, "name"),
                f"{names[position]} is the name of groups[{first}] too; give each group its own name",
            )


def _links_known(value: Any, names: list[str]) -> Iterator[Found]:
    pairs: list[set[str]] = []
    for index, link in _entries(value, "links"):
        between = link.get("between")
        if not isinstance(between, list):
            continue
        for side, name in enumerate(between):
            if isinstance(name, str) and name not in names:
                yield ("links", index, "between", side), f"no group is called {name!r}{nearest(name, names)}"
        if len(between) == 2 and all(isinstance(name, str) for name in between):
            if between[0] == between[1]:
                yield (
                    ("links", index, "between"),
                    f"names {between[0]} twice; name two groups (inside one it is inter_node)",
                )
            elif set(between) in pairs:
                yield (
                    ("links", index, "between"),
                    f"these groups have a link already, links[{pairs.index(set(between))}]; remove one",
                )
        pairs.append({name for name in between if isinstance(name, str)})


def _networks(index: int, group: dict[str, Any], *, several: bool) -> Iterator[Found]:
    """Demand a link inside the node, and one between the nodes where there are several."""
    device = group.get("device")
    name = device.get("device") if isinstance(device, dict) else device
    row = _row(name)
    if not row and (name is not None or not isinstance(device, dict)):
        return
    here = ("groups", index)
    who = name if isinstance(name, str) else "a device given in full"
    if group.get("intra_node") is None and not (row and row.intra_node):
        yield (*here, "intra_node"), f"is missing, and no link is usual for {who}; add a link's name or a block"
    nodes = group.get("nodes", 1)
    many = isinstance(nodes, (int, float)) and nodes > 1
    if group.get("inter_node") is None and not (row and row.inter_node) and (many or several):
        why = f"{nodes} nodes" if many else "several groups"
        yield (
            (*here, "inter_node"),
            f"is missing, and no network is usual for {who}; {why} need one: add a name or a block",
        )


def _tiers(index: int, group: dict[str, Any]) -> Iterator[Found]:
    spans = [(at, tier.get("nodes")) for at, tier in _entries(group, "tiers")]
    for (_, before), (at, after) in pairwise(spans):
        if isinstance(before, int) and isinstance(after, int) and after <= before:
            yield (
                ("groups", index, "tiers", at, "nodes"),
                f"should be more than {before}, the tier before; list tiers smallest first",
            )


def _levels(index: int, group: dict[str, Any]) -> Iterator[Found]:
    """Demand that each level below the node divides the next one, and the largest the node."""
    levels = [(at, level.get("devices")) for at, level in _entries(group.get("intra_node"), "levels")]
    above: list[tuple[str, object]] = [(f"the devices of levels[{at}]", number) for at, number in levels[1:]]
    above.append(("the devices of the node", group.get("devices_per_node")))
    for (at, number), (what, whole) in zip(levels, above, strict=True) if levels else ():
        if not isinstance(number, (int, float)) or not isinstance(whole, (int, float)) or number <= 1:
            continue
        if number >= whole or whole % number:
            yield (
                ("groups", index, "intra_node", "levels", at, "devices"),
                f"should divide {what}, {whole}, into several parts; list levels smallest first",
            )


def _shared(value: Any, groups: list[tuple[int, dict[str, Any]]]) -> Iterator[Found]:
    """Demand that groups on shared nodes have as many nodes, and a link inside the node."""
    inside = [link.get("between") for _, link in _entries(value, "links") if link.get("transport") == "node"]
    sets = [set(pair) for pair in inside if isinstance(pair, list) and all(isinstance(name, str) for name in pair)]
    seen: dict[str, tuple[int, dict[str, Any]]] = {}
    for index, group in groups:
        name = group.get("shared_nodes")
        if not isinstance(name, str) or name not in seen:
            seen[str(name)] = (index, group)
            continue
        first, other = seen[name]
        if group.get("nodes", 1) != other.get("nodes", 1):
            yield (
                ("groups", index, "nodes"),
                f"should be the same as of groups[{first}], which shares the nodes {name!r}",
            )
        if {name_of(group), name_of(other)} not in sets:
            pair = f"{name_of(other)} and {name_of(group)}"
            yield (
                ("groups", index, "shared_nodes"),
                f"{pair} share nodes; add their link inside the node (transport: node) to links",
            )
    homes = {name_of(group): group.get("shared_nodes") for _, group in groups}
    for at, link in _entries(value, "links"):
        ends = link.get("between")
        if link.get("transport") != "node" or not isinstance(ends, list) or len(ends) != 2:
            continue
        first_home, second_home = (homes.get(name) if isinstance(name, str) else None for name in ends)
        if first_home is None or first_home != second_home:
            yield (
                ("links", at, "transport"),
                "node is of groups that share nodes; give both the same shared_nodes, or write rdma or tcp",
            )


def _calibrated(value: Any, groups: list[tuple[int, dict[str, Any]]]) -> Iterator[Found]:
    """Demand that the device of a calibration is that of a group."""
    block = value.get("calibration") if isinstance(value, dict) else None
    name = block.get("device") if isinstance(block, dict) else None
    names = [_device_name(group.get("device")) for _, group in groups]
    if isinstance(name, str) and name not in names:
        yield ("calibration", "device"), f"no group has the device {name!r}{nearest(name, [n for n in names if n])}"


def _device_name(device: object) -> str:
    """Return the name of a device as written, in the catalogue's spelling; empty if it cannot be told."""
    return name_of({"device": device})
