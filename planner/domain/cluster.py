"""What a cluster is made of: devices, links, groups of identical nodes, and the links between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.domain.calibration import Calibration
from planner.domain.plan import Strategy
from planner.domain.precision import PRECISIONS
from planner.domain.profile import LayerProfile
from planner.units import choose, interpolated, smaller


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
    measured: tuple[tuple[float, float], ...] = ()
    """(devices, [bytes/s] per device, one direction) reached by large collectives; it replaces the bandwidth."""

    @property
    def rate(self) -> Any:
        """[bytes/s] reached by large messages between two devices, one direction."""
        return self.collective_rate(2)

    def collective_rate(self, ranks: Any) -> Any:
        """Return [bytes/s] per device, one direction, when `ranks` devices of the node exchange large messages.

        Between measured numbers the rate follows the power law through both; beyond them it is that of the nearest.
        """
        return interpolated(ranks, self.measured) if self.measured else self.bandwidth * self.efficiency


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
    rails: int = 1
    """Adapters of a node; one device uses one of them, or its share if there are fewer adapters than devices."""
    tiers: tuple[Tier, ...] = ()
    """Levels above the node, smallest first; the network inside the smallest has the full bandwidth."""

    measured: tuple[tuple[float, float], ...] = ()
    """(nodes, [bytes/s] per node, one direction) reached by large collectives; it replaces bandwidth and tiers."""

    def rate(self, num_nodes: Any) -> Any:
        """Return [bytes/s] per node, one direction, when `num_nodes` nodes exchange large messages.

        Between measured scales the rate follows the power law through both; beyond them it stays that of the nearest.
        """
        if self.measured:
            return interpolated(num_nodes, self.measured)
        bandwidth = self.bandwidth
        for tier in self.tiers:
            bandwidth = choose(num_nodes > tier.num_nodes, smaller(bandwidth, tier.bandwidth), bandwidth)
        return bandwidth * self.efficiency


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
    """``rdma``, ``tcp`` or ``node`` (the two groups share nodes, and the link is inside the node)."""
    bandwidth: float
    """[bytes/s] one direction, per node (per device for ``node``)."""
    efficiency: float
    latency: float
    """[s] of one message."""

    @property
    def rate(self) -> float:
        """[bytes/s] reached by large messages, one direction, per node (per device for ``node``)."""
        return self.bandwidth * self.efficiency


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
