"""What a dump can tell, in one vocabulary for all tools, and the type of a reader of dumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Pair = tuple[int, int]
"""Two devices of a node, the smaller index first, counted from 0 in the order of the dump."""


@dataclass(frozen=True, slots=True)
class Tie:
    """How two devices of a node reach each other."""

    kind: str
    """``nvlink``, ``xgmi`` or ``pcie``."""
    lanes: int = 0
    """Bonded links of NVLink; 0 for other kinds, which do not count them."""
    far: bool = False
    """Whether the path crosses from one processor (socket) to another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node; what a dump does not tell is empty."""

    vendor: str
    """Whose tool wrote the dump, as the catalogue has it."""
    num_devices: int
    names: tuple[str, ...] = ()
    """What the tool calls each device."""
    memory_gib: tuple[float, ...] = ()
    """[2^30 bytes] of each device, as the driver reports it."""
    ties: Mapping[Pair, Tie] = field(default_factory=dict)
    """Of every pair, or of none."""
    pcie: tuple[tuple[int, int], ...] = ()
    """Generation and lanes of each device's PCI Express."""
    adapters: int = 0
    """Network adapters that were seen, whatever their use."""
    adapter_gbit_per_s: tuple[float, ...] = ()
    """[10^9 bits/s] of each adapter, where the dump has the rates."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Like devices of one node."""

    name: str
    """What the tool calls them; empty if it does not say."""
    count: int
    memory_gib: float = 0.0
    """[2^30 bytes] of each; 0 if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a list."""

    name: str
    """Only to be found again in a topology; it is written nowhere."""
    devices: tuple[Devices, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level above the node: the sets of nodes below each of its switches, blocks or zones."""

    name: str
    parts: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Which nodes are near each other."""

    levels: tuple[Level, ...] = ()
    """Smallest first."""
    domains: tuple[frozenset[str], ...] = ()
    """Nodes that one NVLink fabric may join."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes with devices that a scheduler knows and would use."""

    nodes: tuple[Node, ...]
    topology: Topology | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An instance that a cloud rents out."""

    instance: str
    devices: Devices
    price: float
    """[currency/h] of the instance, on demand."""
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """A list of prices."""

    offers: tuple[Offer, ...]
    notes: tuple[str, ...] = ()


Seen = Machine | Nodes | Topology | Offers
"""What a dump is about."""


def unfinished(text: str) -> tuple[str, ...]:
    """Return a note where the last line of a list has no end, by which alone it can be seen that it was cut off."""
    return () if text.endswith("\n") else ("the last line has no end; if the list was cut off there, take it anew",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A tool whose output is understood."""

    name: str
    """The command, as it is typed."""
    recognises: Callable[[str], bool]
    """Whether a text is (or began as) the tool's output."""
    read: Callable[[str, str], Seen]
    """(text, origin) -> what it tells. Raises SpecError with every problem and its place."""
