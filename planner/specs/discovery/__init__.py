"""Dumps of machines, schedulers and clouds to the record of a cluster file, with a note of all that was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from planner.errors import Problem, SpecError
from planner.loader import Document
from planner.machines import Machine, Node, Nodes, Offers, Seen, Topology, read_dump
from planner.specs import catalog
from planner.specs.cluster import cluster_from_document
from planner.specs.discovery.devices import Kind, Note
from planner.specs.discovery.machine import between, inside, kinds_of, merged
from planner.specs.discovery.naming import named_as_listed, refuse_other_name
from planner.specs.discovery.network import given_network, network
from planner.specs.discovery.nodes import Alike, alike, tiers
from planner.specs.discovery.prices import instance_of, price_of
from planner.units import MICROSECOND

One = TypeVar("One", Nodes, Topology, Offers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the user adds to the dumps; None where they say nothing."""

    nodes: int | None = None
    network: str | None = None
    """A name of the catalogue, or adapters x Gbit/s."""
    device: str | None = None
    """Name of the catalogue for devices that no dump names, or by a name that is unknown or means several."""
    instance: str | None = None
    """Instance type of a catalogue of prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dumps:
    """What was read, by what it is about, each with its origin."""

    machines: tuple[tuple[str, str, Machine], ...]
    """Each with its tool, too."""
    nodes: tuple[str, Nodes] | None
    topology: tuple[str, Topology] | None
    offers: tuple[str, Offers] | None


@dataclass(frozen=True, slots=True)
class _Like:
    """The machine that some nodes are like, None if none was dumped, and which of its devices are of each kind."""

    machine: Machine | None
    indices: Sequence[Sequence[int]]


def cluster_from_dumps(texts: Sequence[tuple[str, str]], told: Told, note: Note) -> dict[str, Any]:
    """Return the record of a cluster file, which is valid.

    Args:
        texts: (text, origin) of each dump, in any order.
        told: what the user adds.
        note: takes a sentence for everything that no dump tells.

    Raises:
        SpecError: with the problems of all dumps.

    """
    dumps = _sorted(_read(texts))
    given = given_network(told.network)
    once = _once(note)
    if told.nodes is not None and dumps.nodes:
        raise SpecError.of("--nodes", f"{dumps.nodes[0]} lists the nodes; leave the option out")
    if told.instance is not None and (dumps.nodes or dumps.machines or not dumps.offers):
        raise SpecError.of("--instance", "is for a catalogue of prices alone; leave the option out")
    machine = merged(dumps.machines) if dumps.machines else None
    for text in machine.notes if machine else ():
        once(text)
    if dumps.nodes:
        record = _of_list(dumps, machine, told, given, once)
    elif machine:
        record = _of_machine(dumps, machine, told, given, once)
    elif dumps.offers:
        record = _of_offer(dumps.offers, told, given, once)
    else:
        origin = dumps.topology[0] if dumps.topology else ""
        raise SpecError.of(origin, "tells how nodes are joined, not what is in them; add scontrol -o show node")
    refuse_other_name(told.device, record["groups"])
    cluster_from_document(Document(value=record, origin="the imported cluster"))
    return record


def _once(note: Note) -> Note:
    """Return a taker of notes that passes each on once."""
    seen: set[str] = set()

    def passed(text: str) -> None:
        if text not in seen:
            seen.add(text)
            note(text)

    return passed


def _read(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str, Seen]]:
    """Return (origin, tool, what it tells) of each dump."""
    found: list[tuple[str, str, Seen]] = []
    problems: list[Problem] = []
    for text, origin in (part for one in texts for part in _parts(*one)):
        try:
            reader, seen = read_dump(text, origin)
        except SpecError as error:
            problems += error.problems
            continue
        found.append((origin, reader.name, seen))
    if problems:
        raise SpecError(problems)
    return found


def _parts(text: str, origin: str) -> list[tuple[str, str]]:
    """Return the dumps of a text: XML may follow another, as in ``(nvidia-smi topo -m; nvidia-smi -q -x) | ...``.

    The XML loses its declaration, which must stand first, and has as many lines before it as it had.
    """
    at = text.find("\n<?xml") + 1
    end = text.find("?>", at) + 2
    if not at or end < 2 or not text[:at].strip():
        return [(text, origin)]
    return [(text[:at], origin), ("\n" * text.count("\n", 0, end) + text[end:], origin)]


def _sorted(found: Sequence[tuple[str, str, Seen]]) -> _Dumps:
    return _Dumps(
        machines=tuple((origin, tool, seen) for origin, tool, seen in found if isinstance(seen, Machine)),
        nodes=_only(found, Nodes),
        topology=_only(found, Topology),
        offers=_only(found, Offers),
    )


def _only(found: Sequence[tuple[str, str, Seen]], kind: type[One]) -> tuple[str, One] | None:
    """Return the only dump of its kind."""
    these = [(origin, seen) for origin, _, seen in found if isinstance(seen, kind)]
    if len(these) > 1:
        raise SpecError.of(these[1][0], f"is of the same kind as {these[0][0]}; import them one at a time")
    return these[0] if these else None


def _of_machine(
    dumps: _Dumps, machine: Machine, told: Told, given: dict[str, Any] | None, note: Note
) -> dict[str, Any]:
    """Return nodes that are like one machine."""
    place = next((origin for origin, _, one in dumps.machines if one.names), dumps.machines[0][0])
    if dumps.topology:
        raise SpecError.of(dumps.topology[0], "names nodes that no list has; add scontrol -o show node")
    kinds = kinds_of(machine, place, note, told.device)
    units = tuple(frozenset({str(n)}) for n in range(_num_nodes(told, note)))
    group = Alike(tuple(one for one, _ in kinds), units)
    return _record([(group, _Like(machine, [indices for _, indices in kinds]))], dumps, given, note)


def _num_nodes(told: Told, note: Note) -> int:
    if told.nodes is None:
        note("groups[0].nodes: the dump is of one machine, so one node is written; give --nodes")
    return told.nodes or 1


def _of_list(
    dumps: _Dumps, machine: Machine | None, told: Told, given: dict[str, Any] | None, note: Note
) -> dict[str, Any]:
    """Return the nodes of a list, those that are like a machine that was dumped with its links."""
    assert dumps.nodes
    place, nodes = dumps.nodes
    names = {node.name for node in nodes.nodes}
    for text in nodes.notes:
        note(text)
    for text in dumps.topology[1].notes if dumps.topology else ():
        note(text)
    topology = dumps.topology[1] if dumps.topology else nodes.topology
    near = [part for level in dumps.topology[1].levels for part in level.parts] if dumps.topology else []
    if dumps.topology and near and not any(part & names for part in near):
        raise SpecError.of(dumps.topology[0], f"has none of the nodes of {place}; give both of one system")
    origin = dumps.machines[0][0] if dumps.machines else ""
    if machine and not machine.names and told.device is None:
        machine = named_as_listed((origin, machine), (place, nodes), note)
    seen = kinds_of(machine, origin, note, told.device) if machine else []
    groups = alike((place, nodes), topology, note, told.device, [one for one, _ in seen])
    signature = [(one.row.device.name, one.count) for one, _ in seen]
    parts: list[tuple[Alike, _Like]] = []
    for group in groups:
        is_seen = machine and [(one.row.device.name, one.count) for one in group.kinds] == signature
        like = _Like(machine, [indices for _, indices in seen]) if is_seen else _Like(None, [])
        parts.append((group, like))
    if machine and not any(like.machine for _, like in parts):
        what = " and ".join(f"{count} x {name}" for name, count in signature)
        raise SpecError.of(origin, f"is of a machine with {what}, and {place} has no such node; dump one that it has")
    return _record(parts, dumps, given, note)


def _of_offer(dump: tuple[str, Offers], told: Told, given: dict[str, Any] | None, note: Note) -> dict[str, Any]:
    """Return nodes that are one instance type of a cloud."""
    origin, offers = dump
    offer = instance_of(offers, told.instance, origin)
    count = _num_nodes(told, note)
    nodes = Nodes(nodes=tuple(Node(name=str(n), devices=(offer.devices,)) for n in range(count)))
    only = Offers(offers=tuple(one for one in offers.offers if one.instance == offer.instance))
    dumps = _Dumps(machines=(), nodes=(origin, nodes), topology=None, offers=(origin, only))
    return _of_list(dumps, None, told, given, note)


def _record(
    parts: Sequence[tuple[Alike, _Like]], dumps: _Dumps, given: dict[str, Any] | None, note: Note
) -> dict[str, Any]:
    """Return the record of groups, each with the machine that its nodes are like."""
    topology = dumps.topology[1] if dumps.topology else dumps.nodes[1].topology if dumps.nodes else None
    groups: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    for part, (group, like) in enumerate(parts):
        ours: list[str] = []
        for number, one in enumerate(group.kinds):
            indices = like.indices[number] if like.machine else range(one.count)
            where = f"groups[{len(groups)}]"
            ours.append(_free_name(one.row.device.name, {str(made["name"]) for made in groups}))
            made: dict[str, Any] = {
                "name": ours[-1],
                "device": one.field,
                "nodes": len(group.units),
                "devices_per_node": one.count,
                "intra_node": inside(one, indices, like.machine, f"{where}.intra_node", note),
                "inter_node": network(one, like.machine, given, f"{where}.inter_node", note),
            }
            if above := tiers(group, topology, f"{where}.tiers", note):
                made["tiers"] = above
            if len(group.kinds) > 1:
                made["shared_nodes"] = f"nodes-{part + 1}"
            if dumps.offers:
                price = price_of(one.row, dumps.offers[1], f"{where}.price_per_device_hour", note)
                made |= {"price_per_device_hour": price} if price is not None else {}
            groups.append(made)
        links += _inside_links(group.kinds, ours, like.machine)
    if len(parts) > 1:
        note("links: groups reach each other over the slower of both networks, which no dump tells; give links if not")
    return {"groups": groups, **({"links": links} if links else {})}


def _free_name(name: str, taken: set[str]) -> str:
    return next(one for one in (name, *(f"{name}-{n}" for n in range(2, 10_000))) if one not in taken)


def _inside_links(kinds: Sequence[Kind], names: Sequence[str], machine: Machine | None) -> list[dict[str, Any]]:
    """Return the links between unlike devices of one node."""
    found: list[dict[str, Any]] = []
    for second in range(1, len(kinds)):
        for first in range(second):
            way = between([kinds[first], kinds[second]], machine)
            row = catalog.link(way.block["link"])
            found.append(
                {
                    "between": [names[first], names[second]],
                    "transport": "node",
                    "bandwidth_gbyte_per_s": round(way.rate / row.efficiency, 3),
                    "efficiency": row.efficiency,
                    "latency_us": row.latency / MICROSECOND,
                }
            )
    return found
