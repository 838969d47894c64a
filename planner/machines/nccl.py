"""The file that NCCL writes to ``NCCL_TOPO_DUMP_FILE``: devices, their NVLinks, where they hang, and network adapters.

The elements are those of NCCL's ``src/graph/xml.cc`` (2.20), as in dumps of public issues (NVIDIA/nccl 1125 and 1505,
aliyun/SimAI 128): ``cpu`` (one a NUMA domain) holds nested ``pci``, and these ``gpu`` with ``nvlink``, and ``nic`` with
``net``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from planner.errors import SpecError
from planner.machines._xml import Element, read_xml
from planner.machines.base import Machine, Pair, Reader, Tie

SWITCH = "0x068000"
"""PCI class of an NVSwitch."""
PRODUCTS = {
    "0x20b0": "NVIDIA A100-SXM4-40GB",
    "0x20b2": "NVIDIA A100-SXM4-80GB",
    "0x20b5": "NVIDIA A100 80GB PCIe",
    "0x20f1": "NVIDIA A100-PCIE-40GB",
    "0x2330": "NVIDIA H100 80GB HBM3",
    "0x2331": "NVIDIA H100 PCIe",
    "0x2335": "NVIDIA H200",
    "0x2901": "NVIDIA B200",
}
"""PCI device of vendor 10de -> name of the product; source: pci.ids."""
_SPEED = re.compile(r"([0-9.]+) *GT/s")
_GENERATIONS = {
    "2.5": 1,
    "5": 2,
    "5.0": 2,
    "8": 3,
    "8.0": 3,
    "16": 4,
    "16.0": 4,
    "32": 5,
    "32.0": 5,
    "64": 6,
    "64.0": 6,
}
"""[GT/s] as sysfs writes them -> generation of PCI Express."""


@dataclass(frozen=True, slots=True)
class _Device:
    """A device with its bus and its socket."""

    element: Element
    pci: Element
    numa: str

    @property
    def bus(self) -> str:
        return self.pci.attributes.get("busid", "").lower()


def recognises(text: str) -> bool:
    """Tell whether a text is such a file."""
    return bool(re.search(r"<system\s+version=", text[:2000]))


def read(text: str, origin: str) -> Machine:
    """Return the devices, links and adapters of a node.

    Raises:
        SpecError: it is no XML, or has no devices.

    """
    root = read_xml(text, origin)
    hosts = {one.attributes.get("host_hash", "") for one in root.walk("cpu")}
    if len(hosts) > 1:
        raise SpecError.of(origin, "is of several hosts, joined by NVLink; give the dump of a run on one node")
    devices = [
        _Device(gpu, pci, cpu.attributes.get("numaid", ""))
        for cpu in root.walk("cpu")
        for pci in cpu.walk("pci")
        for gpu in pci.inner
        if gpu.tag == "gpu"
    ]
    if not devices:
        raise SpecError.of(f"{origin}:{root.line}", "has no gpu; let a run of all devices of the node write it")
    devices.sort(key=lambda one: _number(one.element.attributes.get("dev", "")))
    names = [PRODUCTS.get(one.pci.attributes.get("device", "").lower(), "") for one in devices]
    pcie = [found for one in devices if (found := _pcie(one.pci))]
    rates, notes = _adapters(root)
    generations = sorted({one.element.attributes.get("sm", "?") for one in devices})
    if not all(names):
        notes = (*notes, f"NCCL tells the generation of the devices (sm {', '.join(generations)}), not their name")
    return Machine(
        vendor="nvidia",
        num_devices=len(devices),
        names=tuple(names) if all(names) else (),
        ties=_ties(devices),
        pcie=tuple(pcie) if len(pcie) == len(devices) else (),
        adapters=len(rates),
        adapter_gbit_per_s=rates,
        notes=notes,
    )


def _number(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def _pcie(pci: Element) -> tuple[int, int] | None:
    speed = _SPEED.match(pci.attributes.get("link_speed", ""))
    generation = _GENERATIONS.get(speed[1]) if speed else None
    lanes = _number(pci.attributes.get("link_width", ""))
    return (generation, lanes) if generation and lanes else None


def _ties(devices: list[_Device]) -> dict[Pair, Tie]:
    """Return the tie of each pair: through NVSwitch as wide as the narrower of both, else the links between the two."""
    links = [_links(one.element) for one in devices]
    return {(a, b): _tie(devices[a], devices[b], links[a], links[b]) for a, b in combinations(range(len(devices)), 2)}


def _tie(a: _Device, b: _Device, of_a: Counter[str], of_b: Counter[str]) -> Tie:
    switched = min(of_a[SWITCH], of_b[SWITCH])
    direct = max(of_a[b.bus], of_b[a.bus])
    if switched or direct:
        return Tie("nvlink", switched or direct)
    return Tie("pcie", far=a.numa != b.numa)


def _links(gpu: Element) -> Counter[str]:
    """Return the number of NVLinks to switches, under their class, and to each other device, under its bus."""
    found: Counter[str] = Counter()
    for one in gpu.walk("nvlink"):
        switch = one.attributes.get("tclass", "").lower() == SWITCH
        found[SWITCH if switch else one.attributes.get("target", "").lower()] += _number(
            one.attributes.get("count", "")
        )
    return found


def _adapters(root: Element) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return [Gbit/s] of the fastest adapters, and a note of what was left out; NCCL writes Mbit/s."""
    speeds = [_number(one.attributes.get("speed", "")) / 1000 for one in root.walk("net")]
    fastest = max(speeds, default=0.0)
    rates = tuple(one for one in speeds if one == fastest and one)
    slower = [one for one in speeds if one != fastest]
    note = f"network adapters slower than {fastest:g} Gbit/s ({len(slower)}) are left out, as for management or storage"
    return rates, (note,) if slower else ()


NCCL = Reader(name="NCCL_TOPO_DUMP_FILE", recognises=recognises, read=read)
