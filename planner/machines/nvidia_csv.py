"""``nvidia-smi --query-gpu=name,memory.total,pci.bus_id --format=csv``: names and memory of a node's devices.

With or without header and units; columns are told by the header, and without one by what they hold.
"""

from __future__ import annotations

import csv
import io
import re

from planner.errors import SpecError
from planner.machines.base import Machine, Reader, unfinished

_MEMORY = re.compile(r"([0-9]{3,7})(?: MiB)?")
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_NAME = re.compile(r"(NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID)\b.*", re.IGNORECASE)
_HEADER = re.compile(r"^[a-z_.]+( \[[A-Za-z]+\])?(, [a-z_.]+( \[[A-Za-z]+\])?)*\s*$")


def recognises(text: str) -> bool:
    """Tell whether a text is such a table: a header with ``name``, or lines with a name and memory or bus."""
    first = text.lstrip("\n\r ").split("\n", 1)[0].rstrip()
    if _HEADER.match(first):
        return "name" in [word.strip() for word in first.split(",")]
    fields = [field.strip() for field in first.split(",")]
    return any(map(_NAME.fullmatch, fields)) and any(_MEMORY.fullmatch(one) or _BUS.fullmatch(one) for one in fields)


def read(text: str, origin: str) -> Machine:
    """Return the devices of a node.

    Raises:
        SpecError: a line has no name.

    """
    try:
        rows = [
            (number, [field.strip() for field in row])
            for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1)
            if any(field.strip() for field in row)
        ]
    except csv.Error as error:
        raise SpecError.of(origin, f"is no CSV: {error}") from None
    header = [field.split(" ")[0] for field in rows[0][1]] if "name" in rows[0][1] else []
    names: list[str] = []
    memory: list[float] = []
    for number, row in rows[1:] if header else rows:
        name, size = _fields(row, header)
        if not name:
            raise SpecError.of(f"{origin}:{number}", "has no name of a device; query name,memory.total,pci.bus_id")
        names.append(name)
        memory += [size] if size else []
    if not names:
        raise SpecError.of(origin, "lists no devices; is the driver loaded on that machine?")
    return Machine(
        vendor="nvidia",
        num_devices=len(names),
        names=tuple(names),
        memory_gib=tuple(memory) if len(memory) == len(names) else (),
        notes=unfinished(text),
    )


def _fields(row: list[str], header: list[str]) -> tuple[str, float]:
    """Return name and memory [GiB] of a line, empty and 0 where it has none."""
    if header:
        fields = dict(zip(header, row, strict=False))
        name, size = fields.get("name", ""), fields.get("memory.total", "")
    else:
        name = next((field for field in row if _NAME.fullmatch(field)), "")
        size = next((field for field in row if _MEMORY.fullmatch(field)), "")
    match = _MEMORY.fullmatch(size)
    return name, float(match[1]) / 1024 if match else 0.0


NVIDIA_CSV = Reader(name="nvidia-smi --query-gpu=name,memory.total --format=csv", recognises=recognises, read=read)
