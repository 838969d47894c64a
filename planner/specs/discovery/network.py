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


def given_network(text: str | None) -> Any:
    """Return what to write for ``--network``: ``8x400`` (adapters x Gbit/s of each) or a name; None if not given.

    Raises:
        SpecError: it is neither.

    """
    if text is None:
        return None
    if match := _RAILS.fullmatch(text):
        if not int(match[1]) or not float(match[2]):
            raise SpecError.of("--network", f"is {text!r}, which carries nothing; both numbers should be more than 0")
        return {"rails": int(match[1]), "rail_gbit_per_s": float(match[2])}
    try:
        return catalog.network(text).name
    except SpecError as error:
        near = error.problems[0].message.split(" (or")[0]
        raise SpecError.of("--network", f"{near} Or write adapters x Gbit/s of each, as in 8x400") from None


def network(one: Kind, machine: Machine | None, given: Any, where: str, note: Note) -> Any:
    """Return what to write for the network of a group; `where` is its key."""
    if given is not None:
        if isinstance(given, dict):
            note(
                f"{where}: efficiency {EFFICIENCY:g} and latency {INTER_NODE_LATENCY_US:g} us are assumed; measured ones are better"
            )
        return given
    rates = machine.adapter_gbit_per_s if machine else ()
    if rates:
        note(
            f"{where}: {len(rates)} adapters of {rates[0]:g} Gbit/s as NCCL saw them; efficiency {EFFICIENCY:g} and latency "
            f"{INTER_NODE_LATENCY_US:g} us are assumed"
        )
        return {"rails": len(rates), "rail_gbit_per_s": rates[0]}
    seen = f" ({machine.adapters} adapters were seen, of unknown rates)" if machine and machine.adapters else ""
    found = _usual(one)
    name = found["network"] if isinstance(found, dict) else found
    row = catalog.network(name)
    rails = found["rails"] if isinstance(found, dict) else row.rails
    note(
        f"{where}: the dump has no network rates{seen}; {name}, usual for {one.row.device.name}, is assumed, {rails} x "
        f"{row.bandwidth / row.rails * 8e-9:g} Gbit/s a node: give --network"
    )
    return found


def _usual(one: Kind) -> Any:
    """Return the usual network of a device, with fewer rails where the node has fewer devices than usual."""
    name = one.row.inter_node
    rails = catalog.network(name).rails
    devices = 72 if name.endswith("nvl72") else USUAL_DEVICES
    fewer = max(1, -(-rails * one.count // devices))
    return {"network": name, "rails": fewer} if fewer < rails else name
