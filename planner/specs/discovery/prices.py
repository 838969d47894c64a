"""Prices of instances to prices of devices, or to a cluster of one instance type."""

from __future__ import annotations

from planner.errors import SpecError
from planner.machines import Offer, Offers
from planner.specs.catalog import DeviceRow
from planner.specs.discovery.devices import Note, fitted
from planner.specs.problems import nearest


def price_of(row: DeviceRow, offers: Offers, where: str, note: Note) -> float | None:
    """Return [currency/h] of a device: that of the cheapest instance that has it, on demand; None if there is none."""
    found = [one for one in offers.offers if (kin := fitted(one.devices.name, one.devices.memory_gib)) and kin == row]
    if not found:
        note(f"{where}: the catalogue of prices has no {row.device.name}, so none is written")
        return None
    best = min(found, key=lambda one: one.price / one.devices.count)
    price = round(best.price / best.devices.count, 4)
    region = best.region or "any region"
    note(f"{where}: {price:g} USD an hour, as {best.instance} costs in {region}, the cheapest of {len(found)}")
    return price


def instance_of(offers: Offers, name: str | None, origin: str) -> Offer:
    """Return the cheapest offer of an instance type.

    Raises:
        SpecError: none is named, or there is none of that name.

    """
    known = {one.instance: f"{one.instance} ({one.devices.count} x {one.devices.name})" for one in offers.offers}
    if name is None:
        some = ", ".join(list(known.values())[:6])
        more = f" and {len(known) - 6} more" if len(known) > 6 else ""
        raise SpecError.of(origin, f"has many kinds of machines; name one with --instance: {some}{more}")
    found = [one for one in offers.offers if one.instance.lower() == name.lower()]
    if not found:
        raise SpecError.of("--instance", f"{origin} has no {name!r}{nearest(name, list(known))}")
    return min(found, key=lambda one: one.price)
