"""Records of a cluster to the domain and back, units converted at this border and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.domain.cluster import Cluster, Device, DeviceGroup, Host
from planner.domain.profile import LayerProfile
from planner.specs import catalog
from planner.specs.cluster_record import ClusterRecord, DeviceBlock, GroupRecord, HostBlock
from planner.specs.link_parts import (
    group_link,
    group_link_record,
    link,
    link_record,
    network,
    network_record,
    node_link,
    preimage,
    rate_record,
    tier,
    tier_record,
)
from planner.specs.profile import profile_record, read_profiles
from planner.units import GBYTE, GIB, TFLOPS

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
        links=tuple(map(group_link, record.links)),
    )


def _group(record: GroupRecord, profile: LayerProfile | None) -> DeviceGroup:
    name = record.device.device if isinstance(record.device, DeviceBlock) else record.device
    row = catalog.device_row(name) if name else None
    device = _device(record.device) if isinstance(record.device, DeviceBlock) else catalog.device(record.device)
    inside = node_link(record.intra_node or (row.intra_node if row else ""))
    inter_node = record.inter_node or (row.inter_node if row else "")
    between = network(inter_node, record.devices_per_node) if inter_node else catalog.no_network(inside.bandwidth)
    tiers = tuple(tier(block, between) for block in record.tiers)
    return DeviceGroup(
        name=record.name or device.name,
        device=device,
        num_nodes=record.nodes,
        devices_per_node=record.devices_per_node,
        intra_node=inside,
        # Tiers that the user writes know more of the site than the catalogue's measurements of another.
        inter_node=replace(between, tiers=tiers, measured=() if tiers else between.measured),
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
    return Host(memory=block.memory_gib * GIB, link_bandwidth=link(block.link, efficiency=HOST_EFFICIENCY).rate)


# --- back to records ----------------------------------------------------------------------------------------------


def record_of(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as a plain record, every default written out."""
    record: dict[str, Any] = {"name": cluster.name, "groups": [_group_record(group) for group in cluster.groups]}
    if cluster.links:
        record["links"] = [group_link_record(one) for one in cluster.links]
    return record


def _group_record(group: DeviceGroup) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": group.name,
        "device": _device_record(group.device),
        "nodes": group.num_nodes,
        "devices_per_node": group.devices_per_node,
        "intra_node": link_record(group.intra_node),
        "inter_node": network_record(group.inter_node),
    }
    if group.inter_node.tiers:
        record["tiers"] = [tier_record(one) for one in group.inter_node.tiers]
    if group.nodes:
        record["shared_nodes"] = group.nodes
    if group.host:
        figures = {**rate_record(group.host.link_bandwidth), "efficiency": 1.0, "latency_us": 0.0}
        record["host"] = {"memory_gib": group.host.memory / GIB, "link": figures}
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
        "memory_bandwidth_gbyte_per_s": preimage(device.memory_bandwidth, GBYTE),
        **{f"{rate}_tflops": preimage(peak, TFLOPS) for rate, peak in device.peak_flops},
        "matmul_efficiency": device.matmul_efficiency,
        **{f"{rate}_efficiency": share for rate, share in device.efficiencies},
        "attention_efficiency": device.attention_efficiency,
        "fused_attention": device.fused_attention,
        **({"vendor": device.vendor} if device.vendor else {}),
    }
