"""What a cluster is made of: devices, links, groups of identical nodes, and the links between groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from planner.domain.calibration import Calibration
from planner.domain.plan import Strategy
from planner.domain.precision import PRECISIONS
from planner.domain.profile import LayerProfile
from planner.units import Bytes, choose, interpolated, larger, smaller

LARGE = float("inf")
"""[bytes] of a message so large that what it costs to begin is nothing beside it."""


def saturated(rate: Any, half_size: Bytes, message: Bytes) -> Any:
    """Return [bytes/s] that messages of `message` bytes reach: r n / (n + n_half), half of r at n_half (Hockney 1994).

    The same as r, and n_half / r more seconds for each message.
    """
    return rate / (1 + half_size / larger(message, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A kind of accelerator. Data, never an enumeration: a new one is a row of the catalogue."""

    name: str
    memory: float
    """[bytes] device memory as the driver reports it."""
    memory_bandwidth: float
    """[bytes/s] peak of the device memory."""
    peak_flops: tuple[tuple[str, float], ...]
    """[FLOP/s] dense peak of the matrix units, by rate (``fp8``, ...); one that is missing is not supported."""
    matmul_efficiency: float
    """[-] share of the peak that large matrix products reach inside training, 16-bit and wider."""
    attention_efficiency: float
    """[-] share of the 16-bit peak that the fused attention kernel reaches in the forward pass."""
    fused_attention: bool
    """Whether a fused (flash) attention kernel exists for the device."""
    vendor: str = ""
    """Whose communication library the device speaks; empty if it is not known."""
    efficiencies: tuple[tuple[str, float], ...] = ()
    """[-] the same as `matmul_efficiency`, by rate, where products reach another share of it."""

    def has(self, precision: str) -> bool:
        """Tell whether the device has units for `precision`."""
        return precision in dict(self.peak_flops)

    def peak(self, precision: str) -> float:
        """Return the dense peak [FLOP/s] in `precision`, or 0.0 if the device does not support it."""
        row, peaks = PRECISIONS[precision], dict(self.peak_flops)
        return 0.0 if row.beside and row.beside not in peaks else peaks.get(row.rate, 0.0)

    def efficiency(self, precision: str) -> float:
        """Return the share [-] of the peak in `precision` that large matrix products reach inside training."""
        return dict(self.efficiencies).get(PRECISIONS[precision].rate, self.matmul_efficiency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link inside a node, per device and direction."""

    name: str
    bandwidth: float
    """[bytes/s] one direction, per device, as the sheet says."""
    efficiency: float
    """[-] share of the bandwidth that large collectives reach."""
    latency: float
    """[s] of one message."""
    half_size: float = 0.0
    """[bytes] message that reaches half of the rate; zero where messages of any size reach all of it."""
    measured: tuple[tuple[float, float], ...] = ()
    """(devices, [bytes/s] per device, one direction) reached by large collectives; it replaces the bandwidth."""
    levels: tuple[Level, ...] = ()
    """Parts of the node with faster links of their own, smallest first."""

    @property
    def rate(self) -> Any:
        """[bytes/s] reached by large messages between any two devices of the node, one direction."""
        return self.rate_at(LARGE)

    def rate_at(self, message: Bytes) -> Any:
        """Return [bytes/s] reached by messages of `message` bytes between any two devices, one direction."""
        return self._rate_across(2, message)

    def collective_rate(self, ranks: Any, inner: Any = 1, message: Bytes = LARGE) -> Any:
        """Return [bytes/s] per device, one direction, when `ranks` devices, `inner` apart, exchange `message` bytes.

        Those inside one part of the node use its link. Between measured numbers the rate follows the power law through
        both; beyond them it is that of the nearest.
        """
        rate = self._rate_across(ranks, message)
        for level in reversed(self.levels):
            rate = choose(level.holds(ranks * inner), level.link.collective_rate(ranks, 1, message), rate)
        return rate

    def latency_within(self, span: Any) -> Any:
        """Return the latency [s] of one message among neighbours that span `span` devices of the node."""
        latency: Any = self.latency
        for level in reversed(self.levels):
            latency = choose(level.holds(span), level.link.latency, latency)
        return latency

    def _rate_across(self, ranks: Any, message: Bytes) -> Any:
        rate = interpolated(ranks, self.measured) if self.measured else self.bandwidth * self.efficiency
        return saturated(rate, self.half_size, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level below the node: parts of so many devices (NVLink pairs, switch islands, NUMA halves) and their link."""

    num_devices: int
    link: Link

    def holds(self, span: Any) -> Any:
        """Tell whether ranks that span `span` devices in a row lie inside one part, whichever of the rows they are."""
        return self.num_devices % span == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A level above the node (rack, pod, zone): how many nodes it spans, and what each node may send beyond it."""

    name: str
    num_nodes: int
    bandwidth: float
    """[bytes/s] one direction, per node, out of the tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network between the nodes of a group, per node and direction."""

    name: str
    bandwidth: float
    """[bytes/s] one direction, per node, all rails together, as the sheet says."""
    efficiency: float
    """[-] share of the bandwidth that large messages reach."""
    latency: float
    """[s] of one message."""
    half_size: float = 0.0
    """[bytes] message that reaches half of the rate; zero where messages of any size reach all of it."""
    rails: int = 1
    """Adapters of a node that work; one device uses one of them, or its share if there are fewer than devices."""
    rail_rates: tuple[float, ...] = ()
    """[bytes/s] of each adapter where they are unlike, zero for one that failed; `bandwidth` is what all carry."""
    striping: str = "pooled"
    """``pooled``, each adapter taking what it can, or ``static``: equal parts, so that the slowest decides."""
    tiers: tuple[Tier, ...] = ()
    """Levels above the node, smallest first; the network inside the smallest has the full bandwidth."""

    measured: tuple[tuple[float, float], ...] = ()
    """(nodes, [bytes/s] per node, one direction) reached by large collectives; it replaces bandwidth and tiers."""
    senders: tuple[tuple[float, float], ...] = ()
    """(devices, [bytes/s] per node, one direction) that a node sends at most when so many of its devices send."""

    @property
    def evenness(self) -> Any:
        """[-] rate of the slowest adapter that works, of the mean: what a device gets that must do with its own."""
        if not self.rail_rates or self.striping == "static":
            return 1.0
        slowest = reduce(smaller, (choose(rate > 0, rate, LARGE) for rate in self.rail_rates))
        return slowest * self.rails / sum(self.rail_rates)

    def rate(self, num_nodes: Any, message: Bytes = LARGE) -> Any:
        """Return [bytes/s] per node, one direction, when `num_nodes` nodes exchange messages of `message` bytes.

        Between measured scales the rate follows the power law through both; beyond them it stays that of the nearest.
        """
        if self.measured:
            return saturated(interpolated(num_nodes, self.measured), self.half_size, message)
        bandwidth = self.bandwidth
        for tier in self.tiers:
            bandwidth = choose(num_nodes > tier.num_nodes, smaller(bandwidth, tier.bandwidth), bandwidth)
        return saturated(bandwidth * self.efficiency, self.half_size, message)

    def node_rate(self, num_nodes: Any, senders: Any, message: Bytes = LARGE) -> Any:
        """Return the same when only `senders` devices of the node send."""
        rate = self.rate(num_nodes, message)
        if not self.senders:
            return rate
        return smaller(rate, saturated(interpolated(senders, self.senders), self.half_size, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine around the devices of a node."""

    memory: float
    """[bytes] of the node."""
    link_bandwidth: float
    """[bytes/s] between a device and the host, one direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """Identical devices on identical nodes. Unlike devices are several groups."""

    name: str
    device: Device
    num_nodes: int
    devices_per_node: int
    intra_node: Link
    inter_node: Network
    nodes: str = ""
    """Name of the set of nodes that this group shares with other groups; empty if the nodes are its own."""
    host: Host | None = None
    profile: LayerProfile | None = None
    """Measured times of layers; None where they are computed."""
    price_per_device_hour: float = 0.0
    """[currency/h] zero where it is not known."""
    mtbf_hours: float = 0.0
    """[h] mean time between failures of one device; zero where it is not known."""

    @property
    def num_devices(self) -> int:
        """Number of devices in the group."""
        return self.num_nodes * self.devices_per_node

    def unmeasured(self, strategy: Strategy, micro_batch: int) -> str:
        """Return why the profile has no times of `strategy` at `micro_batch`; empty if it has, or if there is none."""
        if self.profile is None or self.profile.has(strategy, micro_batch):
            return ""
        degrees = " ".join(f"{axis}={degree}" for axis, degree in strategy.degrees if degree > 1) or "tp=1"
        return f"{degrees} micro-batch={micro_batch} not measured on {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLink:
    """What connects two groups."""

    first: str
    second: str
    transport: str
    """``rdma``, ``tcp`` (by way of the hosts) or ``node`` (the groups share nodes, and the link is inside the node)."""
    bandwidth: float
    """[bytes/s] one direction, per node (per device for ``node``)."""
    efficiency: float
    latency: float
    """[s] of one message."""
    half_size: float = 0.0
    """[bytes] message that reaches half of the rate; zero where messages of any size reach all of it."""

    @property
    def rate(self) -> Any:
        """[bytes/s] reached by large messages, one direction, per node (per device for ``node``)."""
        return self.rate_at(LARGE)

    def rate_at(self, message: Bytes) -> Any:
        """Return [bytes/s] reached by messages of `message` bytes, one direction."""
        return saturated(self.bandwidth * self.efficiency, self.half_size, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Groups of devices and what connects them."""

    name: str
    groups: tuple[DeviceGroup, ...]
    links: tuple[GroupLink, ...] = ()
    """One for each pair of groups that has a link of its own; other pairs use the slower of their networks."""
    calibration: Calibration | None = None
    """What measured runs say of it; None if it was not calibrated."""

    @property
    def num_devices(self) -> int:
        """Number of devices in all groups."""
        return sum(group.num_devices for group in self.groups)

    def group(self, name: str) -> DeviceGroup:
        """Return the group called `name`.

        Raises:
            KeyError: there is no such group.

        """
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def link(self, first: str, second: str) -> GroupLink | None:
        """Return the declared link between two groups, in either order, or None where none is declared."""
        for link in self.links:
            if {link.first, link.second} == {first, second}:
                return link
        return None
