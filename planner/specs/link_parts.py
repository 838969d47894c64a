"""Records of links to the domain and back, units converted at this border and nowhere else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from planner.domain.cluster import GroupLink, Level, Link, Network, Tier
from planner.specs import catalog
from planner.specs.link_record import GroupLinkRecord, LinkBlock, NetworkBlock, NodeLinkBlock, TierBlock
from planner.specs.measured import link_rates, network_rates
from planner.units import GBIT, GBYTE, KIB, MICROSECOND

EFFICIENCY = 0.8
"""[-] of a link whose record gives none: what NCCL reaches on NVLink (0.75 to 0.85) and InfiniBand (0.8 to 0.95)."""
INTRA_NODE_LATENCY_US = 5.0
"""[1e-6 s] of a link inside a node whose record gives none."""
INTER_NODE_LATENCY_US = 10.0
"""[1e-6 s] of a link between nodes whose record gives none."""


def _bandwidth(block: Any) -> float:
    """Return [bytes/s] of a record that gives one of its two keys for bandwidth, or else the best that was measured."""
    if block.bandwidth_gbyte_per_s is not None:
        return float(block.bandwidth_gbyte_per_s * GBYTE)
    if block.bandwidth_gbit_per_s is not None:
        return float(block.bandwidth_gbit_per_s * GBIT)
    return float(max(rate.bandwidth_gbyte_per_s for rate in block.measured) * GBYTE)


def _has_bandwidth(block: Any) -> bool:
    return block.bandwidth_gbyte_per_s is not None or block.bandwidth_gbit_per_s is not None


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def link(block: LinkBlock | str, efficiency: float = EFFICIENCY) -> Link:
    """Return the link of the catalogue that is named, or that of a block; `efficiency` if a block gives none."""
    if isinstance(block, str):
        return catalog.link(block)
    base = catalog.link(block.link) if block.link else None
    latency = None if block.latency_us is None else block.latency_us * MICROSECOND
    given = _has_bandwidth(block) or block.efficiency is not None
    return Link(
        name=block.name or (base.name if base else "given"),
        bandwidth=base.bandwidth if base and not _has_bandwidth(block) else _bandwidth(block),
        efficiency=_or(block.efficiency, base.efficiency if base else efficiency if _has_bandwidth(block) else 1.0),
        latency=_or(latency, base.latency if base else INTRA_NODE_LATENCY_US * MICROSECOND),
        half_size=_half_size(block),
        measured=link_rates(block) or (base.measured if base and not given else ()),
    )


def node_link(block: NodeLinkBlock | str) -> Link:
    """Return the link inside a node, with the levels below the node."""
    found = link(block)
    if isinstance(block, str):
        return found
    return replace(found, levels=tuple(Level(num_devices=part.devices, link=link(part)) for part in block.levels))


def network(block: NetworkBlock | str, devices_per_node: int) -> Network:
    """Return the network of the catalogue that is named, or that of a block."""
    if isinstance(block, str):
        return catalog.network(block)
    base = catalog.network(block.network) if block.network else None
    latency = None if block.latency_us is None else block.latency_us * MICROSECOND
    rail_rates = tuple(rate * GBIT for rate in block.rail_rates_gbit_per_s or ())
    sheet = _has_bandwidth(block) or block.rail_gbit_per_s is not None or bool(rail_rates)
    given = sheet or block.rails is not None or block.efficiency is not None
    return Network(
        name=block.name or (base.name if base else "given"),
        bandwidth=_striped(rail_rates, block) if rail_rates else _network_bandwidth(block, base),
        efficiency=_or(block.efficiency, base.efficiency if base else EFFICIENCY if sheet else 1.0),
        latency=_or(latency, base.latency if base else INTER_NODE_LATENCY_US * MICROSECOND),
        half_size=_half_size(block),
        rails=sum(rate > 0 for rate in rail_rates) or block.rails or (base.rails if base else 1),
        rail_rates=rail_rates,
        striping=block.striping or "pooled",
        measured=network_rates(block, devices_per_node) or (base.measured if base and not given else ()),
        senders=tuple((float(one.devices), one.bandwidth_gbyte_per_s * GBYTE) for one in block.senders),
    )


def _network_bandwidth(block: NetworkBlock, base: Network | None) -> float:
    """Return [bytes/s] of all rails; a change of the rails or of one rail's rate keeps the other."""
    if block.rail_gbit_per_s is not None:
        rails = block.rails or (base.rails if base else 1)
        return rails * block.rail_gbit_per_s * GBIT
    if base and not _has_bandwidth(block):
        return base.bandwidth / base.rails * block.rails if block.rails else base.bandwidth
    return _bandwidth(block)


def _striped(rates: tuple[float, ...], block: NetworkBlock) -> float:
    """Return [bytes/s] of unlike rails: their sum, or each as much as the slowest carries."""
    return len(rates) * min(rates) if block.striping == "static" else sum(rates)


def _half_size(block: LinkBlock | NetworkBlock | GroupLinkRecord) -> float:
    """Return [bytes] of the message that reaches half of the rate."""
    return (block.half_bandwidth_kib or 0.0) * KIB


def tier(block: TierBlock, network: Network) -> Tier:
    """Return a level above the node, out of which each node has a bandwidth of its own or a share of the network's."""
    share = block.oversubscription
    bandwidth = _bandwidth(block) if share is None else network.bandwidth / share
    return Tier(name=block.name, num_nodes=block.nodes, bandwidth=bandwidth)


def group_link(record: GroupLinkRecord) -> GroupLink:
    """Return the link between two groups."""
    latency = INTRA_NODE_LATENCY_US if record.transport == "node" else INTER_NODE_LATENCY_US
    return GroupLink(
        first=record.between[0],
        second=record.between[1],
        transport=record.transport,
        bandwidth=_bandwidth(record),
        efficiency=_or(record.efficiency, EFFICIENCY),
        latency=_or(record.latency_us, latency) * MICROSECOND,
        half_size=_half_size(record),
    )


# --- back to records ----------------------------------------------------------------------------------------------


def link_record(link: Link) -> dict[str, Any]:
    """Return a link inside a node as a plain record."""
    levels = [{"devices": level.num_devices, **link_record(level.link)} for level in link.levels]
    record = {"name": link.name, **rate_record(link.bandwidth), **_figures(link), **_measured_record(link, "devices")}
    return {**record, "levels": levels} if levels else record


def network_record(network: Network) -> dict[str, Any]:
    """Return a network as a plain record, without its tiers."""
    rails: dict[str, Any] = {"rails": network.rails, **rate_record(network.bandwidth)}
    if network.rail_rates:
        rates = [preimage(rate, GBIT) for rate in network.rail_rates]
        rails = {"rail_rates_gbit_per_s": rates, "striping": network.striping}
    senders = [{"devices": int(at), "bandwidth_gbyte_per_s": preimage(rate, GBYTE)} for at, rate in network.senders]
    figures = {**rails, **_figures(network), **_measured_record(network, "nodes")}
    return {"name": network.name, **figures, **({"senders": senders} if senders else {})}


def tier_record(tier: Tier) -> dict[str, Any]:
    """Return a level above the node as a plain record."""
    return {"name": tier.name, "nodes": tier.num_nodes, **rate_record(tier.bandwidth)}


def group_link_record(link: GroupLink) -> dict[str, Any]:
    """Return the link between two groups as a plain record."""
    ends = {"between": [link.first, link.second], "transport": link.transport}
    return {**ends, **rate_record(link.bandwidth), **_figures(link)}


def _figures(link: Link | Network | GroupLink) -> dict[str, float]:
    """Return the keys that all links have beside their rate."""
    figures = {"efficiency": link.efficiency, "latency_us": preimage(link.latency, MICROSECOND)}
    return {**figures, "half_bandwidth_kib": link.half_size / KIB} if link.half_size else figures


def _measured_record(link: Link | Network, scale: str) -> dict[str, list[dict[str, float]]]:
    """Return the key of measured rates with their scales, if there are any."""
    rates = [{scale: int(at), "bandwidth_gbyte_per_s": preimage(rate, GBYTE)} for at, rate in link.measured]
    return {"measured": rates} if rates else {}


def rate_record(bandwidth: float) -> dict[str, float]:
    """Return the key that holds `bandwidth` [bytes/s] without loss, bytes before bits."""
    for key, unit in (("bandwidth_gbyte_per_s", float(GBYTE)), ("bandwidth_gbit_per_s", GBIT)):
        if (value := preimage(bandwidth, unit)) * unit == bandwidth:
            return {key: value}
    return {"bandwidth_gbyte_per_s": bandwidth / GBYTE}


def preimage(value: float, unit: float) -> float:
    """Return the number that times `unit` gives `value` to the last bit, if there is one next to the quotient."""
    quotient = round(value / unit, 12)
    near = (quotient, value / unit, math.nextafter(value / unit, math.inf), math.nextafter(value / unit, -math.inf))
    return next((number for number in near if number * unit == value), value / unit)
