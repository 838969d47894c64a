"""Several dumps of one machine to one, and its groups of like devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from planner.errors import SpecError
from planner.machines import Devices, Machine, Pair, Tie
from planner.specs.catalog import simple
from planner.specs.discovery.devices import Kind, Note, kind, lacks_name
from planner.specs.discovery.links import Way, islands, node_link, pcie

ORDERS = {"nvlink": "CUDA_VISIBLE_DEVICES", "xgmi": "HIP_VISIBLE_DEVICES"}
"""Kind of link -> variable that sets the order of devices."""


def merged(dumps: Sequence[tuple[str, str, Machine]]) -> Machine:
    """Return what dumps (origin, tool, machine) of one machine tell together; the first that tells a thing is believed.

    Raises:
        SpecError: they contradict each other.

    """
    first, _, found = dumps[0]
    for number, (origin, tool, one) in enumerate(dumps[1:], 1):
        for other, same, before in dumps[:number]:
            if same == tool and ((one.ties and before.ties) or (one.names and before.names)):
                raise SpecError.of(origin, f"tells the same as {other}; import one machine at a time")
        if one.vendor != found.vendor:
            message = f"is of {one.vendor} and {first} of {found.vendor}; take all dumps on one machine, or import one"
            raise SpecError.of(origin, message)
        if one.num_devices != found.num_devices:
            message = (
                f"shows {one.num_devices} devices and {first} {found.num_devices}; take all dumps on one machine, with "
                "all its devices, or import one"
            )
            raise SpecError.of(origin, message)
        if one.names and found.names and list(map(simple, one.names)) != list(map(simple, found.names)):
            raise SpecError.of(
                origin, f"names other devices than {first}; take all dumps on one machine, or import one"
            )
        found = Machine(
            vendor=found.vendor,
            num_devices=found.num_devices,
            names=found.names or one.names,
            memory_gib=found.memory_gib or one.memory_gib,
            ties=found.ties or one.ties,
            pcie=found.pcie or one.pcie,
            adapters=max(found.adapters, one.adapters),
            adapter_gbit_per_s=found.adapter_gbit_per_s or one.adapter_gbit_per_s,
            notes=(*found.notes, *one.notes),
        )
    return found


def kinds_of(machine: Machine, place: str, note: Note, named: str | None) -> list[tuple[Kind, list[int]]]:
    """Return the kinds of devices, each with the devices of the dump that are of it.

    Raises:
        SpecError: a device is not known.

    """
    names = machine.names or ("",) * machine.num_devices
    memory = machine.memory_gib or (0.0,) * machine.num_devices
    alike: dict[tuple[str, int], list[int]] = {}
    for index, (name, size) in enumerate(zip(names, memory, strict=True)):
        key = ("", 0) if lacks_name(name, named) else (name, round(size))
        alike.setdefault(key, []).append(index)
    kinds: list[tuple[Kind, list[int]]] = []
    for (name, _), indices in alike.items():
        one = kind(Devices(name=name, count=len(indices), memory_gib=memory[indices[0]]), place, note, named)
        same = next((at for at, (other, _) in enumerate(kinds) if other.field == one.field), None)
        if same is None:
            kinds.append((one, indices))
        else:
            before, others = kinds[same]
            kinds[same] = (replace(before, count=before.count + one.count), sorted([*others, *indices]))
    for one, _ in kinds:
        if one.row.device.vendor not in {"", machine.vendor}:
            message = f"{one.row.device.name} is of {one.row.device.vendor}, and the dump of {machine.vendor}"
            given = any(not name for name, _ in alike)
            raise SpecError.of("--device" if given else place, f"{message}; name what the machine has")
    return kinds


def inside(one: Kind, indices: Sequence[int], machine: Machine | None, where: str, note: Note) -> dict[str, Any]:
    """Return what to write for the link between like devices of a node.

    Args:
        one: the devices.
        indices: of the devices in the dump.
        machine: the dump; None if there is none.
        where: the key that it is written to.
        note: takes what was assumed.

    """
    usual = one.row.intra_node
    heads = indices[:: len(indices) // one.count]
    seen = slowest(machine, indices)
    if machine is None or not machine.ties or len(heads) == 1:
        if one.count > 1:
            note(f"{where}: no dump shows it; {usual}, usual for {one.row.device.name}, is assumed")
        return pcie(one.row, seen, far=False).block if usual.startswith("pcie") else {"link": usual}
    ties = _among(heads, machine)
    whole, levels = node_link(one.row, len(heads), ties, seen)
    _note_islands(heads, ties, [size for size, _ in levels], where, note)
    return {**whole.block, **({"levels": [_level(*level) for level in levels]} if levels else {})}


def slowest(machine: Machine | None, indices: Sequence[int]) -> tuple[int, int] | None:
    """Return generation and lanes of the slowest PCI Express among some devices, None if it is not known."""
    if machine is None or not machine.pcie:
        return None
    return min((machine.pcie[index] for index in indices), key=lambda found: 2.0 ** found[0] * found[1])


def _among(indices: Sequence[int], machine: Machine) -> dict[Pair, Tie]:
    """Return the ties among some devices, counted anew."""
    pairs = combinations(range(len(indices)), 2)
    return {(a, b): machine.ties[indices[a], indices[b]] for a, b in pairs}


def _level(size: int, inner: Way) -> dict[str, Any]:
    fabric = "xgmi" if inner.block["link"].startswith("xgmi") else "nvlink"
    name = f"{fabric}-pair" if size == 2 else f"{fabric}-island"
    return {"name": "socket" if inner.block["link"].startswith("pcie") else name, "devices": size, **inner.block}


def _note_islands(heads: Sequence[int], ties: dict[Pair, Tie], levels: Sequence[int], where: str, note: Note) -> None:
    """Tell of islands that no division of the node in equal parts of neighbours has."""
    found = [one for one in islands(len(heads), ties) if len(one) > 1]
    if not found or len(found[0]) == len(heads) or len(found[0]) in levels:
        return
    fabric = next(tie.kind for tie in ties.values() if tie.kind in ORDERS)
    if len({len(one) for one in found}) == 1 and sum(map(len, found)) == len(heads):
        order = ",".join(str(heads[index]) for one in found for index in one)
        note(
            f"{where}: {fabric} joins devices that are no neighbours, which is left out; with {ORDERS[fabric]}={order} "
            "they are: import again then"
        )
    else:
        note(f"{fabric} joins some of the devices only, which is left out; name devices that are all alike")


def between(kinds: Sequence[Kind], machine: Machine | None) -> Way:
    """Return the link inside a node between unlike devices: the slower one's PCI Express."""
    far = machine is not None and any(tie.far for tie in machine.ties.values())
    seen = slowest(machine, range(machine.num_devices)) if machine else None
    return min((pcie(one.row, seen, far=far) for one in kinds), key=lambda one: one.rate)
