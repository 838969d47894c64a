"""The network between nodes: what the user says, what a dump has, or what is usual for the device."""

from __future__ import annotations

import re
from typing import Any

from planner.errors import SpecError
from planner.machines import Machine
from planner.specs import catalog
from planner.specs.discovery.devices import Kind, Note
from planner.specs.link_parts import EFFICIENCY, INTER_NODE_LATENCY_US

_RAILS = re.compile(r"\s*([0-9]{1,4})\s*x\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(?:g|gbps|gbit/s|gb/s)?\s*", re.IGNORECASE)
USUAL_DEVICES = 8
"""Devices of the node for which the catalogue's rows of networks have their rails, but for those of a rack of 72."""


def given_network(text: str | None) -> dict[str, Any] | None:
    """Return what to write for ``--network``: ``8x400`` (adapters x Gbit/s of each) or a name; None if not given.

    Raises:
        SpecError: it is neither.

    """
    if text is None:
        return None
    if match := _RAILS.fullmatch(text):
        if not int(match[1]) or not float(match[2]):
            raise SpecError.of("--network", f"is {text!r}, which carries nothing; both numbers should be more than 0")
        return {"rails": int(match[1]), "rail_gbit_per_s": _plain(float(match[2]))}
    try:
        return {"network": catalog.network(text).name}
    except SpecError as error:
        near = error.problems[0].message.split(" (or")[0].removesuffix("?")
        raise SpecError.of("--network", f"{near}, or write adapters x Gbit/s of each, as in 8x400") from None


def network(one: Kind, machine: Machine | None, given: dict[str, Any] | None, where: str, note: Note) -> dict[str, Any]:
    """Return what to write for the network of a group; `where` is its key."""
    if given is not None:
        if "network" not in given:
            note(
                f"{where}: efficiency {EFFICIENCY:g} and latency {INTER_NODE_LATENCY_US:g} us are assumed; "
                "measured ones are better"
            )
        return given
    rates = machine.adapter_gbit_per_s if machine else ()
    if rates:
        note(
            f"{where}: {len(rates)} x {rates[0]:g} Gbit/s as NCCL saw them; efficiency {EFFICIENCY:g} and "
            f"latency {INTER_NODE_LATENCY_US:g} us are assumed"
        )
        return {"rails": len(rates), "rail_gbit_per_s": _plain(rates[0])}
    row = catalog.network(one.row.inter_node)
    rails, why = _rails(one, row.rails, machine.adapters if machine else 0)
    note(
        f"{where}: the dump has no network rates{why}; {row.name}, usual for {one.row.device.name}, is assumed, "
        f"{rails} x {row.bandwidth / row.rails * 8e-9:g} Gbit/s a node: give --network"
    )
    return {"network": row.name, **({"rails": rails} if rails != row.rails else {})}


def _plain(number: float) -> float:
    """Return a whole number as such, as people write it."""
    return int(number) if number.is_integer() else number


def _rails(one: Kind, usual: int, adapters: int) -> tuple[int, str]:
    """Return the rails of a node, and what was seen of them.

    Each adapter that was seen is one, but no node has more than its devices use: one for each, for some devices more.

    Args:
        one: the devices of the node.
        usual: rails of the device's usual network.
        adapters: that were seen, of whatever use; 0 if no dump shows them.

    """
    for_each = max(1, usual // (72 if one.row.inter_node.endswith("nvl72") else USUAL_DEVICES))
    most = one.count * for_each
    if not adapters:
        return min(usual, most), ""
    seen = "1 adapter" if adapters == 1 else f"{adapters} adapters"
    if adapters <= most:
        return adapters, f" but shows {seen}"
    rest = f"{adapters - most} of its {seen} {'is' if adapters == most + 1 else 'are'} taken to be for other uses"
    return most, f", and {rest}, as {one.count} devices use {most}"
