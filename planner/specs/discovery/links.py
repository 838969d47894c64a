"""How devices of a node reach each other, to the link inside the node and the levels below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from planner.machines import Pair, Tie
from planner.specs import catalog
from planner.specs.catalog import DeviceRow
from planner.units import GBYTE

LANES = {
    "nvlink1": 4,
    "nvlink2": 6,
    "nvlink3": 12,
    "nvlink3-a800": 8,
    "nvlink4": 18,
    "nvlink4-h800": 8,
    "nvlink5": 18,
    "nvl72": 18,
    "nvlink3-bridge": 12,
    "nvlink3-bridge-ga102": 4,
    "nvlink4-bridge": 12,
}
"""Link of the catalogue -> NVLinks of a device that it is made of, from the data sheets named there."""
BRIDGES = {
    "a100": "nvlink3-bridge",
    "a30": "nvlink3-bridge",
    "h100": "nvlink4-bridge",
    "a40": "nvlink3-bridge-ga102",
    "rtxa5000": "nvlink3-bridge-ga102",
    "rtxa6000": "nvlink3-bridge-ga102",
    "rtx3090": "nvlink3-bridge-ga102",
    "rtx3090ti": "nvlink3-bridge-ga102",
    "rtx2080": "nvlink2",
    "rtx2080ti": "nvlink2",
    "titan": "nvlink2",
}
"""Chip of a card on PCI Express -> the NVLink of its bridges."""
PCIE_OF = {"nvlink1": 3, "nvlink2": 3, "nvlink3": 4, "nvlink3-a800": 4, "xgmi2": 4, "xgmi2-bridge": 4}
"""Usual link of a device -> generation of its PCI Express; others have 5."""
PCIE_RATES = {1: 4.0, 2: 8.0, 3: 15.75, 4: 31.5, 5: 63.0, 6: 126.0}
"""[10^9 bytes/s] of 16 lanes, by generation."""
NO_P2P = "-no-p2p"
RING_MAX = 8
"""Devices up to which a ring that not all pairs are joined for is looked for, as in the hybrid cube mesh of DGX-1."""

Ties = Mapping[Pair, Tie]


@dataclass(frozen=True, slots=True)
class Way:
    """A link as it is written, and what it carries."""

    block: dict[str, Any]
    """A row of the catalogue, and what changes it."""
    rate: float
    """[10^9 bytes/s] reached by collectives, per device and direction."""


def way(name: str, bandwidth: float | None = None) -> Way:
    """Return a link of the catalogue, with another bandwidth [10^9 bytes/s] where it is given."""
    row = catalog.link(name)
    sheet = row.bandwidth / GBYTE
    if bandwidth is None or abs(bandwidth - sheet) < 1e-6 * sheet:
        return Way({"link": name}, sheet * row.efficiency)
    return Way({"link": name, "bandwidth_gbyte_per_s": bandwidth}, bandwidth * row.efficiency)


def pcie(row: DeviceRow, seen: tuple[int, int] | None, *, far: bool) -> Way:
    """Return PCI Express between two devices.

    Args:
        row: of the devices.
        seen: generation and lanes; None if they are not known.
        far: whether the way crosses from socket to socket, where bytes are taken to be copied through host memory.

    """
    usual = row.intra_node
    without = far or usual.endswith(NO_P2P)
    generation, lanes = seen or (int(usual[4]) if usual.startswith("pcie") else PCIE_OF.get(usual, 5), 16)
    generation = min(generation, max(PCIE_RATES))
    name = f"pcie{min(max(generation, 3), 5)}{NO_P2P if without else ''}"
    return way(name, PCIE_RATES[generation] * min(lanes, 16) / 16)


def node_link(row: DeviceRow, size: int, ties: Ties, seen: tuple[int, int] | None) -> tuple[Way, list[tuple[int, Way]]]:
    """Return the link of a node of `size` devices and its levels (devices, link), smallest first.

    A level is a division of the node in equal parts of neighbours, each of which reaches more inside than the next
    larger part does.
    """
    whole = _inside(row, range(size), ties, seen)
    levels: list[tuple[int, Way]] = []
    outer, rate = size, whole.rate
    for part in (n for n in range(size - 1, 1, -1) if size % n == 0):
        if outer % part:
            continue
        blocks = [range(at, at + part) for at in range(0, size, part)]
        inside = min((_inside(row, block, ties, seen) for block in blocks), key=lambda one: one.rate)
        if inside.rate > rate * 1.01:
            levels.insert(0, (part, inside))
            outer, rate = part, inside.rate
    return whole, levels


def _inside(row: DeviceRow, block: Sequence[int], ties: Ties, seen: tuple[int, int] | None) -> Way:
    """Return what any group of devices inside a block can count on."""
    pairs = {pair: ties[pair] for pair in combinations(block, 2)}
    for fabric in ("xgmi", "nvlink"):
        joined = {pair: tie for pair, tie in pairs.items() if tie.kind == fabric}
        if joined and (len(joined) == len(pairs) or has_ring(block, set(joined))):
            return _xgmi(row) if fabric == "xgmi" else _nvlink(row, block, joined)
    return pcie(row, seen, far=any(tie.far for tie in pairs.values()))


def _xgmi(row: DeviceRow) -> Way:
    return way(row.intra_node if row.intra_node.startswith("xgmi") else "xgmi2-bridge")


def _nvlink(row: DeviceRow, block: Sequence[int], joined: Ties) -> Way:
    """Return NVLink inside a block: all links of a device together, which go to each peer or to a switch."""
    name = row.intra_node if row.intra_node in LANES else BRIDGES.get(row.device.name.split("-")[0], "nvlink3-bridge")
    total = LANES[name]
    sums = [sum(tie.lanes for pair, tie in joined.items() if one in pair) for one in block]
    # More links to all peers together than the device has are the same links, through a switch.
    lanes = min(sums) if max(sums) <= total else min(tie.lanes for tie in joined.values())
    sheet = catalog.link(name).bandwidth / GBYTE
    return way(name, sheet / total * min(lanes, total))


def has_ring(block: Sequence[int], joined: set[Pair]) -> bool:
    """Tell whether a ring through all devices of a block uses only the pairs that are joined."""
    if not 3 <= len(block) <= RING_MAX:
        return False
    near = {one: [two for two in block if (min(one, two), max(one, two)) in joined] for one in block}
    first = block[0]

    def closes(at: int, left: frozenset[int]) -> bool:
        if not left:
            return first in near[at]
        return any(closes(after, left - {after}) for after in near[at] if after in left)

    return all(len(others) > 1 for others in near.values()) and closes(first, frozenset(block) - {first})


def islands(size: int, ties: Ties) -> Iterator[tuple[int, ...]]:
    """Return the sets of devices that NVLink or XGMI joins, in the order of their first device."""
    left = set(range(size))
    while left:
        found, edge = set[int](), {min(left)}
        while edge:
            found |= edge
            edge = {two for one in edge for two in left - found if ties[min(one, two), max(one, two)].kind != "pcie"}
        left -= found
        yield tuple(sorted(found))
