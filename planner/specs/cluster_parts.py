"""Records of a cluster to the domain and back, units converted at this border and nowhere else."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.domain.cluster import Cluster, Device, DeviceGroup, GroupLink, Host, Link, Network, Tier
from planner.domain.profile import LayerProfile
from planner.specs import catalog
from planner.specs.cluster_record import (
    ClusterRecord,
    DeviceBlock,
    GroupLinkRecord,
    GroupRecord,
    HostBlock,
    LinkBlock,
    NetworkBlock,
)
from planner.specs.measured import link_rates, network_rates
from planner.specs.profile import profile_record, read_profiles
from planner.units import GBIT, GBYTE, GIB, MICROSECOND, TFLOPS

EFFICIENCY = 0.8
"""[-] of a link whose record gives none: what NCCL reaches on NVLink (0.75 to 0.85) and InfiniBand (0.8 to 0.95)."""
INTRA_NODE_LATENCY_US = 5.0
"""[1e-6 s] of a link inside a node whose record gives none."""
INTER_NODE_LATENCY_US = 10.0
"""[1e-6 s] of a link between nodes whose record gives none."""
MATMUL_EFFICIENCY, ATTENTION_EFFICIENCY = 0.6, 0.4
"""[-] of a device whose record gives none."""
HOST_EFFICIENCY = 1.0
"""[-] of a link to the host whose block gives none: such a figure is usually measured."""


def cluster(record: ClusterRecord, default_name: str, folder: Path) -> Cluster:
    """Return the cluster of a valid record, whose files are named as seen from `folder`.

    Raises:
        SpecError: a file cannot be used; with the problems of all files.

    """
    profiles = read_profiles(record.groups, folder)
    return Cluster(
        name=record.name or default_name,
        groups=tuple(_group(group, profile) for group, profile in zip(record.groups, profiles, strict=True)),
        links=tuple(_group_link(link) for link in record.links),
    )


def _group(record: GroupRecord, profile: LayerProfile | None) -> DeviceGroup:
    name = record.device.device if isinstance(record.device, DeviceBlock) else record.device
    row = catalog.device_row(name) if name else None
    device = _device(record.device) if isinstance(record.device, DeviceBlock) else catalog.device(record.device)
    intra_node = _link(record.intra_node or (row.intra_node if row else ""))
    inter_node = record.inter_node or (row.inter_node if row else "")
    network = _network(inter_node, record.devices_per_node) if inter_node else catalog.no_network(intra_node.bandwidth)
    tiers = tuple(Tier(name=tier.name, num_nodes=tier.nodes, bandwidth=_bandwidth(tier)) for tier in record.tiers)
    return DeviceGroup(
        name=record.name or device.name,
        device=device,
        num_nodes=record.nodes,
        devices_per_node=record.devices_per_node,
        intra_node=intra_node,
        # Tiers that the user writes know more of the site than the catalogue's measurements of another.
        inter_node=replace(network, tiers=tiers, measured=() if tiers else network.measured),
        nodes=record.shared_nodes or "",
        host=_host(record.host) if record.host else None,
        profile=profile,
        price_per_device_hour=record.price_per_device_hour or 0.0,
        mtbf_hours=record.mtbf_hours or 0.0,
    )


def _device(block: DeviceBlock) -> Device:
    base = catalog.device(block.device) if block.device else None
    peaks = dict(base.peak_flops if base else ())
    peaks |= {rate: peak * TFLOPS for rate in catalog.RATES if (peak := getattr(block, f"{rate}_tflops")) is not None}
    shares = dict(base.efficiencies if base else ())
    shares |= {
        rate: share for rate in catalog.NARROW_RATES if (share := getattr(block, f"{rate}_efficiency")) is not None
    }
    figures = {
        "name": block.name,
        "memory": _times(block.memory_gib, GIB),
        "memory_bandwidth": _times(block.memory_bandwidth_gbyte_per_s, GBYTE),
        "matmul_efficiency": block.matmul_efficiency,
        "attention_efficiency": block.attention_efficiency,
        "fused_attention": block.fused_attention,
        "vendor": block.vendor,
    }
    given: dict[str, Any] = {name: value for name, value in figures.items() if value is not None}
    given["peak_flops"] = tuple((rate, peaks[rate]) for rate in catalog.RATES if rate in peaks)
    given["efficiencies"] = tuple((rate, shares[rate]) for rate in catalog.NARROW_RATES if rate in shares)
    if base:
        return replace(base, **given)
    defaults: dict[str, Any] = {
        "matmul_efficiency": MATMUL_EFFICIENCY,
        "attention_efficiency": ATTENTION_EFFICIENCY,
        "fused_attention": True,
    }
    return Device(**(defaults | given))


def _times(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit


def _host(block: HostBlock) -> Host:
    """Return the host; its link carries one direction at the rate that large messages reach."""
    link = _link(block.link, efficiency=HOST_EFFICIENCY)
    return Host(memory=block.memory_gib * GIB, link_bandwidth=link.rate)


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


def _link(block: LinkBlock | str, efficiency: float = EFFICIENCY) -> Link:
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
        measured=link_rates(block) or (base.measured if base and not given else ()),
    )


def _network(block: NetworkBlock | str, devices_per_node: int) -> Network:
    if isinstance(block, str):
        return catalog.network(block)
    base = catalog.network(block.network) if block.network else None
    latency = None if block.latency_us is None else block.latency_us * MICROSECOND
    sheet = _has_bandwidth(block) or block.rail_gbit_per_s is not None
    given = sheet or block.rails is not None or block.efficiency is not None
    return Network(
        name=block.name or (base.name if base else "given"),
        bandwidth=_network_bandwidth(block, base),
        efficiency=_or(block.efficiency, base.efficiency if base else EFFICIENCY if sheet else 1.0),
        latency=_or(latency, base.latency if base else INTER_NODE_LATENCY_US * MICROSECOND),
        rails=block.rails or (base.rails if base else 1),
        measured=network_rates(block, devices_per_node) or (base.measured if base and not given else ()),
    )


def _network_bandwidth(block: NetworkBlock, base: Network | None) -> float:
    """Return [bytes/s] of all rails; a change of the rails or of one rail's rate keeps the other."""
    if block.rail_gbit_per_s is not None:
        rails = block.rails or (base.rails if base else 1)
        return rails * block.rail_gbit_per_s * GBIT
    if base and not _has_bandwidth(block):
        return base.bandwidth / base.rails * block.rails if block.rails else base.bandwidth
    return _bandwidth(block)


def _group_link(record: GroupLinkRecord) -> GroupLink:
    latency = INTRA_NODE_LATENCY_US if record.transport == "node" else INTER_NODE_LATENCY_US
    return GroupLink(
        first=record.between[0],
        second=record.between[1],
        transport=record.transport,
        bandwidth=_bandwidth(record),
        efficiency=_or(record.efficiency, EFFICIENCY),
        latency=_or(record.latency_us, latency) * MICROSECOND,
    )


# --- back to records ----------------------------------------------------------------------------------------------


def record_of(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as a plain record, every default written out."""
    record: dict[str, Any] = {"name": cluster.name, "groups": [_group_record(group) for group in cluster.groups]}
    if cluster.links:
        record["links"] = [
            {"between": [link.first, link.second], "transport": link.transport, **_link_figures(link)}
            for link in cluster.links
        ]
    return record


def _group_record(group: DeviceGroup) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": group.name,
        "device": _device_record(group.device),
        "nodes": group.num_nodes,
        "devices_per_node": group.devices_per_node,
        "intra_node": {
            "name": group.intra_node.name,
            **_link_figures(group.intra_node),
            **_measured_record(group.intra_node, "devices"),
        },
        "inter_node": {
            "name": group.inter_node.name,
            "rails": group.inter_node.rails,
            **_link_figures(group.inter_node),
            **_measured_record(group.inter_node, "nodes"),
        },
    }
    if group.inter_node.tiers:
        record["tiers"] = [
            {"name": tier.name, "nodes": tier.num_nodes, **_rate(tier.bandwidth)} for tier in group.inter_node.tiers
        ]
    if group.nodes:
        record["shared_nodes"] = group.nodes
    if group.host:
        link = {**_rate(group.host.link_bandwidth), "efficiency": 1.0, "latency_us": 0.0}
        record["host"] = {"memory_gib": group.host.memory / GIB, "link": link}
    if group.profile:
        record["profile"] = profile_record(group.profile)
    if group.price_per_device_hour:
        record["price_per_device_hour"] = group.price_per_device_hour
    if group.mtbf_hours:
        record["mtbf_hours"] = group.mtbf_hours
    return record


def _device_record(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "memory_gib": device.memory / GIB,
        "memory_bandwidth_gbyte_per_s": _preimage(device.memory_bandwidth, GBYTE),
        **{f"{rate}_tflops": _preimage(peak, TFLOPS) for rate, peak in device.peak_flops},
        "matmul_efficiency": device.matmul_efficiency,
        **{f"{rate}_efficiency": share for rate, share in device.efficiencies},
        "attention_efficiency": device.attention_efficiency,
        "fused_attention": device.fused_attention,
        **({"vendor": device.vendor} if device.vendor else {}),
    }


def _link_figures(link: Link | Network | GroupLink) -> dict[str, float]:
    latency = _preimage(link.latency, MICROSECOND)
    return {**_rate(link.bandwidth), "efficiency": link.efficiency, "latency_us": latency}


def _measured_record(link: Link | Network, scale: str) -> dict[str, list[dict[str, float]]]:
    """Return the key of measured rates with their scales, if there are any."""
    rates = [{scale: int(at), "bandwidth_gbyte_per_s": _preimage(rate, GBYTE)} for at, rate in link.measured]
    return {"measured": rates} if rates else {}


def _rate(bandwidth: float) -> dict[str, float]:
    """Return the key that holds `bandwidth` [bytes/s] without loss, bytes before bits."""
    for key, unit in (("bandwidth_gbyte_per_s", float(GBYTE)), ("bandwidth_gbit_per_s", GBIT)):
        if (value := _preimage(bandwidth, unit)) * unit == bandwidth:
            return {key: value}
    return {"bandwidth_gbyte_per_s": bandwidth / GBYTE}


def _preimage(value: float, unit: float) -> float:
    """Return the number that times `unit` gives `value` to the last bit, if there is one next to the quotient."""
    quotient = round(value / unit, 12)
    near = (quotient, value / unit, math.nextafter(value / unit, math.inf), math.nextafter(value / unit, -math.inf))
    return next((number for number in near if number * unit == value), value / unit)
