"""Measured bandwidths by scale: what is wrong with a list of them, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from planner.loader import Path
from planner.specs.link_record import LinkBlock, NetworkBlock
from planner.specs.problems import Found
from planner.units import GBYTE

Rates = tuple[tuple[float, float], ...]
"""(devices or nodes, [bytes/s])"""


def link_rates(block: LinkBlock) -> Rates:
    """Return the measured rates by number of devices."""
    return tuple((float(rate.devices), rate.bandwidth_gbyte_per_s * GBYTE) for rate in block.measured)


def network_rates(block: NetworkBlock, devices_per_node: int) -> Rates:
    """Return the measured rates by number of nodes."""
    return tuple(
        (float(rate.nodes or (rate.devices or 0) // devices_per_node), rate.bandwidth_gbyte_per_s * GBYTE)
        for rate in block.measured
    )


def measured_rules(index: int, group: dict[str, Any]) -> Iterator[Found]:
    """Find what is wrong with the measured rates of a group, as they are written: scales, and tiers beside them."""
    per_node = group.get("devices_per_node")
    for key, block in _links(group):
        here, rates = ("groups", index, *key, "measured"), _entries(block)
        unit = per_node if key == ("inter_node",) and isinstance(per_node, int) and per_node > 0 else 1
        for at, rate in enumerate(rates):
            number = rate.get("devices")
            if isinstance(number, int) and (number % unit or 1 < number <= unit):
                message = f"should be whole nodes of {unit}, two or more: measure with all devices of each node"
                yield (*here, at, "devices"), message
        scales = [_scale(rate, unit) for rate in rates]
        for at, (before, after) in enumerate(pairwise(scales)):
            if before is not None and after is not None and after <= before:
                yield (*here, at + 1), "should be of a larger scale than the entry before; list scales ascending"
    if _entries(group.get("inter_node")) and group.get("tiers"):
        message = "mean nothing beside the measured rates of inter_node; keep one of them"
        yield ("groups", index, "tiers"), message


def _links(group: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield what may have measured rates, with where it stands in the group."""
    inside = group.get("intra_node")
    yield ("intra_node",), inside
    yield ("inter_node",), group.get("inter_node")
    levels = inside.get("levels") if isinstance(inside, dict) else None
    for at, level in enumerate(levels if isinstance(levels, list) else ()):
        yield ("intra_node", "levels", at), level


def _entries(block: Any) -> list[dict[str, Any]]:
    """Return the measured rates of a block that are mappings."""
    rates = block.get("measured") if isinstance(block, dict) else None
    return [rate if isinstance(rate, dict) else {} for rate in rates] if isinstance(rates, list) else []


def _scale(rate: dict[str, Any], devices_per_node: int) -> float | None:
    """Return the scale of an entry, None where it cannot be told."""
    nodes, devices = rate.get("nodes"), rate.get("devices")
    if isinstance(nodes, (int, float)):
        return float(nodes)
    return devices / devices_per_node if isinstance(devices, (int, float)) else None
