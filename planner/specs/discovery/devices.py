"""What tools call a device, to the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import SpecError
from planner.machines import Devices
from planner.specs import catalog
from planner.specs.catalog import DeviceRow
from planner.specs.problems import nearest, shown
from planner.units import GIB

Note = Callable[[str], None]
"""Takes a sentence that the user should read."""

MEMORY_TOLERANCE = 0.12
"""[-] by which a driver's figure of memory may differ: error correction in the memory takes a sixteenth of it."""
DIES = {"mi250x-128gb": 2}
"""Device of the catalogue -> dies of it that ROCm shows as a device each."""
_VENDOR = re.compile(r"^(nvidia|amd|tesla|geforce|instinct)[ _-]+", re.IGNORECASE)
_FORM = re.compile(r"[ _-]+(vf|mig.*)$", re.IGNORECASE)
"""What virtual functions add to a name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Like devices of a node: their row, what to write for it, and how many there are."""

    row: DeviceRow
    field: Any
    """A name of the catalogue, or a block that changes its row."""
    count: int

    @property
    def dies(self) -> int:
        """Devices of the dump that are one of the catalogue."""
        return DIES.get(self.row.device.name, 1)


def kind(devices: Devices, place: str, note: Note, named: str | None, seen: Sequence[Kind] = ()) -> Kind:
    """Return the kind of some devices.

    Args:
        devices: as the dump has them.
        place: of the dump.
        note: takes what was assumed.
        named: name in the catalogue that the user gives to devices whose own is none, unknown or means several.
        seen: devices of a machine that was dumped; as many of a short name, or of none, are these.

    Raises:
        SpecError: the catalogue has no such device, or half of one.

    """
    nameless = lacks_name(devices.name, named)
    if named is None and not devices.name:
        if len(seen) == 1 and seen[0].count * seen[0].dies == devices.count:
            note(f"{place} does not name its devices; {devices.count} of a node are taken to be those of the machine")
            return seen[0]
        raise SpecError.of(
            place, "does not name its devices; add a dump that does, or --device NAME (planner show devices)"
        )
    given = _row(named, "--device") if named is not None else None
    row = given if given and nameless else _row(devices.name, place)
    row, field = (row, row.device.name) if nameless else _fitting(row, devices, note, seen, given)
    found = Kind(row, field, devices.count)
    if found.dies == 1:
        return found
    if devices.count % found.dies:
        raise SpecError.of(
            place, f"shows {devices.count} dies of {row.device.name}, of which {found.dies} are one device"
        )
    note(f"{devices.count} dies, which ROCm shows apart, are {devices.count // found.dies} devices {row.device.name}")
    return Kind(row, row.device.name, devices.count // found.dies)


def lacks_name(name: str, named: str | None) -> bool:
    """Tell whether a device of a dump is called what the user says, as its own name is none or unknown."""
    return named is not None and (not name or row_of(name) is None)


def row_of(name: str) -> DeviceRow | None:
    """Return the row of a device, its vendor written or not, or None."""
    tries = [name, _FORM.sub("", name)]
    while (shorter := _VENDOR.sub("", tries[-1])) != tries[-1]:
        tries.append(shorter)
    return next((row for one in tries if (row := _listed(one))), None)


def _listed(name: str) -> DeviceRow | None:
    try:
        return catalog.device_row(name)
    except SpecError:
        return None


def fitted(name: str, memory_gib: float) -> DeviceRow | None:
    """Return the row of a device of that name and, where it is known, memory; None if there is none."""
    row = row_of(name)
    if row is None or not memory_gib or _fits(row, memory_gib):
        return row
    return next(iter(_siblings(row, memory_gib)), None)


def _row(name: str, place: str) -> DeviceRow:
    if row := row_of(name):
        return row
    names = [*(row.device.name for row in catalog.device_rows())]
    near = nearest(_VENDOR.sub("", name), names).removesuffix("?")
    message = (
        f"no device is called {shown(name)}{near}; name its row with --device, or the nearest one and "
        "then write its own figures in full in the cluster file, as a block under device"
    )
    raise SpecError.of(place, message)


def _fitting(
    row: DeviceRow, devices: Devices, note: Note, seen: Sequence[Kind], given: DeviceRow | None
) -> tuple[DeviceRow, Any]:
    """Return the row with the memory that was seen, or a block that changes it."""
    name, memory = row.device.name, devices.memory_gib
    if not memory:
        family = _family(row)
        if len(family) > 1 and not _is_plain(devices.name, row):
            meant = next((one for one in seen if one.row in family and one.count == devices.count), None)
            if meant:
                return meant.row, meant.field
            if given and given in family and _may_mean(devices.name, given):
                return given, given.device.name
            note(f"{devices.name} is taken as {name}; other devices have that name too, so check `device`")
        return row, name
    if _fits(row, memory) or (name in DIES and _fits(row, memory * DIES[name])):
        return row, name
    others = _siblings(row, memory)
    if len(others) == 1:
        return others[0], others[0].device.name
    note(
        f"{devices.name} has {memory:.1f} GiB and {name} {row.device.memory / GIB:g}; the memory is written, check "
        "the other figures"
    )
    return row, {"device": name, "memory_gib": round(memory, 1)}


def _fits(row: DeviceRow, memory_gib: float) -> bool:
    return abs(memory_gib * GIB / row.device.memory - 1) <= MEMORY_TOLERANCE


def _is_plain(name: str, row: DeviceRow) -> bool:
    """Tell whether a name says how much memory the device has, as the catalogue's names do."""
    return bool(re.search(rf"(?<![0-9]){row.device.memory / GIB:.0f} ?g", name, re.IGNORECASE))


def _may_mean(name: str, row: DeviceRow) -> bool:
    """Tell whether a name says nothing else than a device is: ``a100`` may be any A100, ``A100-PCIE`` no SXM one."""
    parts = row.device.name.split("-")
    words = re.findall(r"[a-z0-9]+", _VENDOR.sub("", name).lower())
    return all(any(word.startswith(part) or part.startswith(word) for part in parts) for word in words)


def _family(row: DeviceRow) -> list[DeviceRow]:
    chip = row.device.name.split("-")[0]
    return [one for one in catalog.device_rows() if one.device.name.split("-")[0] == chip]


def _siblings(row: DeviceRow, memory_gib: float) -> list[DeviceRow]:
    """Return rows of the same chip in the same form that have that memory."""
    form = row.device.name.rsplit("-", 1)[0]
    return [one for one in _family(row) if one.device.name.rsplit("-", 1)[0] == form and _fits(one, memory_gib)]
