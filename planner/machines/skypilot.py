"""A catalogue of SkyPilot (``~/.sky/catalogs/*/CLOUD/vms.csv``): what instances with accelerators cost, and where.

Columns as in version 8 of the hosted catalogues; their order differs from cloud to cloud.
"""

from __future__ import annotations

import ast
import csv
import io
import math

from planner.errors import SpecError
from planner.machines.base import Devices, Offer, Offers, Reader

COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
NAMES = {"A100": "A100-40GB", "V100": "V100-16GB"}
"""Names of SkyPilot that would mean a larger device elsewhere."""
_LONGEST = 4000
"""[characters] of GpuInfo that are read."""


def recognises(text: str) -> bool:
    """Tell whether a text is a catalogue."""
    header = text.lstrip("\ufeff\n\r ").split("\n", 1)[0]
    return "InstanceType" in header and "AcceleratorName" in header and "," in header


def read(text: str, origin: str) -> Offers:
    """Return the instances with accelerators and a price on demand.

    Raises:
        SpecError: columns are missing, or no line can be used.

    """
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, restval="")
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise SpecError.of(f"{origin}:1", f"has no column {', '.join(missing)}; give a catalogue as SkyPilot keeps it")
    try:
        offers = [offer for row in reader if (offer := _offer(row))]
    except csv.Error as error:
        raise SpecError.of(f"{origin}:{reader.line_num}", f"is no CSV: {error}") from None
    if not offers:
        raise SpecError.of(
            origin, "has no instance with accelerators and a price; give the catalogue of a cloud that has"
        )
    return Offers(offers=tuple(offers))


def _offer(row: dict[str, str]) -> Offer | None:
    """Return the offer of a line; None for those without accelerators, without price, or of other machines (TPUs)."""
    name, count, price = row["AcceleratorName"], _number(row["AcceleratorCount"]), _number(row["Price"])
    if not name or not row["InstanceType"] or price <= 0 or count < 1 or count != int(count):
        return None
    devices = Devices(name=NAMES.get(name, name), count=int(count), memory_gib=_memory(row.get("GpuInfo") or ""))
    return Offer(instance=row["InstanceType"], devices=devices, price=price, region=row["Region"])


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) and found < 1e6 else 0.0


def _memory(text: str) -> float:
    """Return [GiB] of one device in GpuInfo, a literal of Python; 0 where it does not tell.

    Some clouds write GiB into ``SizeInMiB``.
    """
    if len(text) > _LONGEST:
        return 0.0
    try:
        info = ast.literal_eval(text)
        size = info["Gpus"][0]["MemoryInfo"]["SizeInMiB"]
    except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError):
        return 0.0
    if isinstance(size, bool) or not isinstance(size, (int, float)) or not 0 < size < 1e6:
        return 0.0
    return float(size) / 1024 if size >= 1024 else float(size)


SKYPILOT = Reader(name="a catalogue of SkyPilot", recognises=recognises, read=read)
