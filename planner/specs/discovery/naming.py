"""Names of devices that no dump has: those of the nodes of a list that have as many, or what the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import SpecError
from planner.machines import Devices, Machine, Nodes
from planner.specs.discovery.devices import Kind, Note, kind, row_of


def named_as_listed(dump: tuple[str, Machine], listed: tuple[str, Nodes], note: Note) -> Machine:
    """Return a machine whose devices no dump names, with the name that a list has for nodes of as many devices.

    Args:
        dump: (origin, machine).
        listed: (origin, nodes).
        note: takes what was assumed.

    Raises:
        SpecError: no node of the list has as many, nodes of several kinds have, or the list does not name them either.

    """
    (origin, machine), (place, nodes) = dump, listed
    number = machine.num_devices
    fitting = {node.devices: None for node in nodes.nodes if sum(one.count for one in node.devices) == number}
    found: dict[str, tuple[Devices, ...]] = {}
    for devices in fitting:
        kinds = [kind(one, place, lambda _: None, None) for one in devices]
        if all(one.row.device.vendor in {"", machine.vendor} for one in kinds):
            found.setdefault(" + ".join(f"{one.count} x {_what(one)}" for one in kinds), devices)
    if not found:
        raise SpecError.of(
            origin, f"shows {number} devices of {machine.vendor}, and {place} has no node with as many; dump one it has"
        )
    label, devices = next(iter(found.items()))
    if len(found) > 1 or len(devices) > 1:
        remedy = "add a dump of the same machine that does"
        if all(len(one) == 1 for one in found.values()):
            remedy = "tell with --device which of them the dump is of"
        message = f"does not name its devices, and {place} has nodes with as many of {' and of '.join(found)}; {remedy}"
        raise SpecError.of(origin, message)
    note(f"{origin} does not name its devices; it is taken to be of a node of {place} with as many, {label}")
    only = devices[0]
    return replace(machine, names=(only.name,) * number, memory_gib=machine.memory_gib or (only.memory_gib,) * number)


def _what(one: Kind) -> str:
    if isinstance(one.field, str):
        return one.field
    return f"{one.row.device.name} of {one.field['memory_gib']:g} GiB"


def refuse_other_name(named: str | None, groups: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a name that the user gave and that no group has, since the dumps name all devices.

    Raises:
        SpecError: it is so.

    """
    row = row_of(named) if named is not None else None
    found = [one["device"] if isinstance(one["device"], str) else one["device"]["device"] for one in groups]
    if row and row.device.name not in found:
        message = f"is {row.device.name}, and the dumps name all devices: {', '.join(dict.fromkeys(found))}"
        raise SpecError.of("--device", f"{message}; leave the option out")
