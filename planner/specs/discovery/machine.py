"""Several dumps of one machine to one, and its groups of like devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from planner.errors import SpecError
from planner.machines import Devices, Machine, Pair, Tie
from planner.specs.catalog import simple
from planner.specs.discovery.devices import Kind, Note, kind
from planner.specs.discovery.links import Way, islands, node_link, pcie

ORDERS = {"nvlink": "CUDA_VISIBLE_DEVICES", "xgmi": "HIP_VISIBLE_DEVICES"}
"""Kind of link -> variable that sets the order of devices."""


def merged(dumps: Sequence[tuple[str, Machine]]) -> Machine:
    """Return what dumps (origin, machine) of one machine tell together; the first that tells something is believed.

    Raises:
        SpecError: they contradict each other.

    """
    first, found = dumps[0]
    for origin, one in dumps[1:]:
        if one.num_devices != found.num_devices:
            message = (
                f"shows {one.num_devices} devices and {first} {found.num_devices}; take all dumps on one machine, with all "
                "its devices, or import one"
            )
            raise SpecError.of(origin, message)
        if one.names and found.names and list(map(simple, one.names)) != list(map(simple, found.names)):
            raise SpecError.of(
                origin, f"names other devices than {first}; take all dumps on one machine, or import one"
            )
        found = Machine(
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
    names = machine.names if machine.names and named is None else ("",) * machine.num_devices
    memory = machine.memory_gib or (0.0,) * machine.num_devices
    indices: dict[tuple[str, int], list[int]] = {}
    for index, (name, size) in enumerate(zip(names, memory, strict=True)):
        indices.setdefault((name, round(size) if named is None else 0), []).append(index)
    return [
        (kind(Devices(name=name, count=len(one), memory_gib=memory[one[0]]), place, note, named), one)
        for (name, _), one in indices.items()
    ]


def inside(one: Kind, indices: Sequence[int], machine: Machine, note: Note) -> Any:
    """Return what to write for the link between like devices of a machine."""
    heads = indices[:: len(indices) // one.count]
    ties = _among(heads, machine)
    if not ties:
        return _unseen(one, machine, note)
    if len(heads) == 1:
        return pcie(one.row, machine.pcie, far=False).field if not one.row.intra_node else one.row.intra_node
    whole, levels = node_link(one.row, len(heads), ties, machine.pcie)
    _note_islands(heads, ties, [size for size, _ in levels], note)
    if not levels:
        return whole.field
    block = whole.field if isinstance(whole.field, dict) else {"link": whole.field}
    return {**block, "levels": [_level(size, inner, ties) for size, inner in levels]}


def _unseen(one: Kind, machine: Machine, note: Note) -> Any:
    """Return the usual link of a device whose links no dump shows."""
    usual = one.row.intra_node
    if machine.pcie and usual.startswith("pcie"):
        usual_way = pcie(one.row, machine.pcie, far=False)
        note(
            f"no dump shows the links between the devices; PCI Express as seen is assumed, check `intra_node` of {one.row.device.name}"
        )
        return usual_way.field
    if one.count > 1:
        note(
            f"no dump shows the links between the devices; {usual}, usual for {one.row.device.name}, is assumed: check `intra_node`"
        )
    return usual


def _among(indices: Sequence[int], machine: Machine) -> dict[Pair, Tie]:
    """Return the ties among some devices, counted anew; of one device alone, a pair that does not exist."""
    if not machine.ties and machine.num_devices > 1:
        return {}
    if len(indices) < 2:
        return {(0, 0): Tie("pcie")}
    pairs = combinations(range(len(indices)), 2)
    return {(a, b): machine.ties[indices[a], indices[b]] for a, b in pairs}


def _level(size: int, inner: Way, ties: dict[Pair, Tie]) -> dict[str, Any]:
    block = inner.field if isinstance(inner.field, dict) else {"link": inner.field}
    fabric = ties[0, 1].kind
    name = f"{fabric}-pair" if size == 2 else "socket" if fabric == "pcie" else f"{fabric}-island"
    return {"name": name, "devices": size, **block}


def _note_islands(heads: Sequence[int], ties: dict[Pair, Tie], levels: Sequence[int], note: Note) -> None:
    """Tell of islands that no division of the node in equal parts of neighbours has."""
    found = [one for one in islands(len(heads), ties) if len(one) > 1]
    if not found or len(found[0]) == len(heads) or len(found[0]) in levels:
        return
    fabric = ties[found[0][:2]].kind if found[0][:2] in ties else "nvlink"
    fabric = fabric if fabric in ORDERS else "nvlink"
    if len({len(one) for one in found}) == 1 and sum(map(len, found)) == len(heads):
        order = ",".join(str(heads[index]) for one in found for index in one)
        note(
            f"{fabric} joins devices that are no neighbours, which is left out; with {ORDERS[fabric]}={order} they are: import again then"
        )
    else:
        note(f"{fabric} joins some of the devices only, which is left out; name devices that are all alike")


def between(kinds: Sequence[Kind], machine: Machine | None) -> Way:
    """Return the link inside a node between unlike devices: the slower one's PCI Express."""
    far = machine is not None and any(tie.far for tie in machine.ties.values())
    return min((pcie(one.row, machine.pcie if machine else None, far=far) for one in kinds), key=lambda one: one.rate)
