"""``amd-smi static --json`` and ``amd-smi topology --json``: names, memory and links of a node's devices.

The fields are those of AMD SMI's change log (ROCm 6.4 and 7), whose lists newer versions put under ``gpu_data``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import SpecError
from planner.loader import parse
from planner.machines.base import Machine, Pair, Reader, Tie

_MARK = re.compile(r'"(market_name|link_type)"\s*:')
_UNITS = {"B": 2.0**-30, "KB": 2.0**-20, "MB": 2.0**-10, "GB": 1.0}
"""AMD SMI writes powers of two under decimal names."""
_FAR_WEIGHT = 52
"""Weight of a way over PCI Express from one socket to another; within one it is 40 (20 for each segment)."""


def recognises(text: str) -> bool:
    """Tell whether a text is of the tool."""
    return text.lstrip()[:1] in {"[", "{"} and '"gpu"' in text and bool(_MARK.search(text))


def read(text: str, origin: str) -> Machine:
    """Return the devices of a node.

    Raises:
        SpecError: it is no JSON, or lacks devices or links.

    """
    value = parse(text, origin).value
    entries = value.get("gpu_data") if isinstance(value, Mapping) else value
    devices = [one for one in entries if isinstance(one, Mapping)] if isinstance(entries, list) else []
    if not devices:
        raise SpecError.of(origin, "lists no gpu; take it anew with amd-smi static --json or amd-smi topology --json")
    names = [_at(one, "asic", "market_name") for one in devices]
    memory = [_gib(_at(one, "vram", "size")) for one in devices]
    pcie = [found for one in devices if (found := _pcie(one))]
    named = all(isinstance(name, str) and name not in {"", "N/A"} for name in names)
    return Machine(
        vendor="amd",
        num_devices=len(devices),
        names=tuple(map(str, names)) if named else (),
        memory_gib=tuple(memory) if all(memory) else (),
        ties=_ties(devices, origin) if any("links" in one for one in devices) else {},
        pcie=tuple(pcie) if len(pcie) == len(devices) else (),
    )


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _gib(size: Any) -> float:
    """Return [GiB] of a size with its unit, or 0."""
    if isinstance(size, str) and (match := re.fullmatch(r"([0-9.]{1,15}) *([KMG]?B)", size)):
        size = {"value": float(match[1]) if match[1].count(".") < 2 else 0.0, "unit": match[2]}
    number, unit = _at(size, "value"), _at(size, "unit")
    return number * _UNITS.get(unit, 0.0) if isinstance(number, (int, float)) and isinstance(unit, str) else 0.0


def _pcie(device: Mapping[str, Any]) -> tuple[int, int] | None:
    generation = re.fullmatch("Gen ([1-9])", str(_at(device, "bus", "pcie_interface_version")))
    lanes = _at(device, "bus", "max_pcie_width")
    return (int(generation[1]), lanes) if generation and isinstance(lanes, int) and 0 < lanes <= 32 else None


def _ties(devices: list[Mapping[str, Any]], origin: str) -> dict[Pair, Tie]:
    """Return the tie of each pair; devices are found by their number, not their place in the list."""
    index = {one.get("gpu"): position for position, one in enumerate(devices) if isinstance(one.get("gpu"), int)}
    ties: dict[Pair, Tie] = {}
    for a, one in enumerate(devices):
        links = one.get("links")
        for link in links if isinstance(links, list) else ():
            number = _at(link, "gpu")
            b = index.get(number, a) if isinstance(number, int) else a
            if a < b:
                ties[a, b] = _tie(link, f"{origin} [{a}].links")
    wanted = len(devices) * (len(devices) - 1) // 2
    if len(ties) != wanted:
        message = (
            f"tells {len(ties)} links of {len(devices)} devices instead of {wanted}; the dump is cut off, take it anew"
        )
        raise SpecError.of(origin, message)
    return ties


def _tie(link: Mapping[str, Any], place: str) -> Tie:
    kind, weight = link.get("link_type"), link.get("weight")
    if kind == "XGMI":
        return Tie("xgmi")
    if kind == "PCIE":
        return Tie("pcie", far=isinstance(weight, (int, float)) and weight >= _FAR_WEIGHT)
    raise SpecError.of(place, "has a link_type other than SELF, XGMI and PCIE; take the dump anew")


AMD_SMI = Reader(name="amd-smi static --json, amd-smi topology --json", recognises=recognises, read=read)
