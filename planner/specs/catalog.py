"""The catalogue (devices, links, networks, frameworks, optimizers, errors), read once, looked up under any name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pkgutil import get_data
from typing import Any, TypeVar

from planner.domain.cluster import Device, Link, Network
from planner.domain.confidence import HeldOut, MeasuredRuns, Spread, TrackRecord
from planner.domain.framework import Capability, Framework
from planner.domain.optimizer import OptimizerRecipe
from planner.errors import SpecError
from planner.loader import load
from planner.units import GBIT, GBYTE, GIB, MICROSECOND, TFLOPS

Row = TypeVar("Row", Link, Network, Framework, OptimizerRecipe)

RATES = ("bf16", "fp16", "fp32", "fp8", "fp4")
"""Rates whose peaks the catalogue tells."""
NARROW_RATES = ("fp8", "fp4")
"""Rates whose efficiencies the catalogue may tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """A device with what the catalogue says around it."""

    device: Device
    aliases: tuple[str, ...]
    intra_node: str
    """Name of the link inside a node that is usual for the device; empty if none is."""
    inter_node: str
    """Name of the network between nodes that is usual for the device; empty if none is."""
    source: str


def device(name: str) -> Device:
    """Return the device that `name`, an alias included, means.

    Raises:
        SpecError: the catalogue has no such device.

    """
    return device_row(name).device


def device_row(name: str) -> DeviceRow:
    """Return the row of the device that `name`, an alias included, means.

    Raises:
        SpecError: the catalogue has no such device.

    """
    if (key := simple(name)) in _device_names():
        return _device_names()[key]
    raise _unknown("device", name, [row.device.name for row in device_rows()], "give its figures in full as a block")


def devices() -> tuple[Device, ...]:
    """Return every device of the catalogue, in its order."""
    return tuple(row.device for row in device_rows())


@cache
def _device_names() -> Mapping[str, DeviceRow]:
    """Return every name of every device, as `simple` writes it."""
    return {simple(name): row for row in device_rows() for name in (row.device.name, *row.aliases)}


@cache
def device_rows() -> tuple[DeviceRow, ...]:
    """Return every row of the catalogue of devices, in its order."""
    return tuple(_device_row(name, row) for name, row in _rows("devices.yaml", "devices").items())


def link(name: str) -> Link:
    """Return the link inside a node that is called `name`.

    Raises:
        SpecError: the catalogue has no such link.

    """
    return _named("link", name, links(), "give bandwidth_gbyte_per_s as a block")


def network(name: str) -> Network:
    """Return the network between nodes that is called `name`.

    Raises:
        SpecError: the catalogue has no such network.

    """
    return _named("network", name, networks(), "give rails and rail_gbit_per_s as a block")


def framework(name: str) -> Framework:
    """Return the framework that is called `name`.

    Raises:
        SpecError: the catalogue has no such framework.

    """
    return _named("framework", name, frameworks(), "")


@cache
def links() -> tuple[Link, ...]:
    """Return every link inside a node, in the order of the catalogue."""
    return tuple(
        Link(
            name=name,
            bandwidth=row["bandwidth_gbyte_per_s"] * GBYTE,
            efficiency=float(row["efficiency"]),
            latency=row["latency_us"] * MICROSECOND,
            measured=_measured(row, "devices"),
        )
        for name, row in _rows("links.yaml", "links").items()
    )


@cache
def networks() -> tuple[Network, ...]:
    """Return every network between nodes, in the order of the catalogue."""
    return tuple(
        Network(
            name=name,
            bandwidth=row["rails"] * row["rail_gbit_per_s"] * GBIT,
            efficiency=float(row["efficiency"]),
            latency=row["latency_us"] * MICROSECOND,
            rails=row["rails"],
            measured=_measured(row, "nodes"),
        )
        for name, row in _rows("links.yaml", "networks").items()
    )


def _measured(row: Mapping[str, Any], scale: str) -> tuple[tuple[float, float], ...]:
    """Return the measured rates of a row: (devices or nodes, [bytes/s])."""
    return tuple((float(rate[scale]), rate["bandwidth_gbyte_per_s"] * GBYTE) for rate in row.get("measured", ()))


def no_network(bandwidth: float) -> Network:
    """Return the network of a single node: it is never used, and as fast as the node so that it never binds."""
    return Network(name="none", bandwidth=bandwidth, efficiency=1.0, latency=0.0)


@cache
def frameworks() -> tuple[Framework, ...]:
    """Return every framework, in the order of the catalogue."""
    rows = _rows("frameworks.yaml", "frameworks")
    return tuple(_framework(name, _filled(row, rows)) for name, row in rows.items())


def optimizer(name: str) -> OptimizerRecipe:
    """Return the optimizer recipe that is called `name`.

    Raises:
        SpecError: the catalogue has no such recipe.

    """
    return _named("optimizer", name, optimizers(), "")


@cache
def optimizers() -> tuple[OptimizerRecipe, ...]:
    """Return every optimizer recipe, in the order of the catalogue."""
    return tuple(OptimizerRecipe(name=name, **row) for name, row in _rows("optimizers.yaml", "optimizers").items())


@cache
def track_record() -> TrackRecord:
    """Return what predictions erred by, as ``make accuracy`` wrote it down."""
    found = _file("errors.yaml")
    return TrackRecord(
        held_out=tuple(
            HeldOut(
                profile=row["profile"],
                chip=row["chip"],
                precisions=tuple(row["precisions"]),
                time=Spread(**row["time"]) if row["time"] else None,
                memory=Spread(**row["memory"]) if row["memory"] else None,
            )
            for row in found["held_out"]
        ),
        measured=tuple(MeasuredRuns(**row) for row in found["measured"]),
    )


def simple(name: str) -> str:
    """Return `name` as it is compared: small letters, without spaces, underscores and hyphens."""
    return "".join(letter for letter in name.lower() if letter not in " _-\t")


def _device_row(name: str, row: Mapping[str, Any]) -> DeviceRow:
    peaks = {rate: row.get(f"{rate}_tflops") for rate in RATES}
    shares = {rate: row.get(f"{rate}_efficiency") for rate in NARROW_RATES}
    found = Device(
        name=name,
        memory=row["memory_gib"] * GIB,
        memory_bandwidth=row["memory_bandwidth_gbyte_per_s"] * GBYTE,
        peak_flops=tuple((rate, peak * TFLOPS) for rate, peak in peaks.items() if peak),
        matmul_efficiency=float(row["matmul_efficiency"]),
        efficiencies=tuple((rate, float(share)) for rate, share in shares.items() if share),
        attention_efficiency=float(row["attention_efficiency"]),
        fused_attention=row["fused_attention"],
        vendor=row.get("vendor") or "",
    )
    return DeviceRow(
        device=found,
        aliases=tuple(row.get("aliases") or ()),
        intra_node=row.get("default_intra_node") or "",
        inter_node=row.get("default_inter_node") or "",
        source=row.get("source") or "",
    )


def _framework(name: str, row: Mapping[str, Any]) -> Framework:
    """Return a framework of a row whose keys are the fields with their units."""
    units = {"_us": MICROSECOND, "_ms": 1e-3, "_gib": float(GIB)}
    names = {field.name for field in fields(Framework)}
    values: dict[str, Any] = {"name": name}
    for key, value in row.items():
        suffix = next((suffix for suffix in units if key.endswith(suffix) and key.removesuffix(suffix) in names), "")
        values[key.removesuffix(suffix)] = value * units[suffix] if suffix else _tupled(value)
    can: dict[str, Any] = {key: _tupled(value) for key, value in row["can"].items()}
    return Framework(**{**values, "can": Capability(**can)})


def _filled(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a row with all that it has in common with the one that it is ``like``, if it is like any."""
    if "like" not in row:
        return row
    base = _filled(rows[row["like"]], rows)
    own = {key: value for key, value in row.items() if key != "like"}
    return {**base, **own, "can": {**base["can"], **row["can"]}}


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def _rows(file: str, key: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows below `key` of a file of the catalogue, or all of it if it has no such key."""
    value = _file(file)
    rows: Mapping[str, Mapping[str, Any]] = value.get(key, value)
    return rows


@cache
def _file(name: str) -> Mapping[str, Any]:
    # pkgutil is a tenth of the start-up time of importlib.resources, and reads zipped packages as well.
    data = get_data("planner.catalog", name)
    if data is None:
        raise AssertionError(f"{name} is part of the package")
    value: Mapping[str, Any] = load(data.decode(), name).value
    return value


def _named(kind: str, name: str, known: Iterable[Row], otherwise: str) -> Row:
    """Return the one of `known` that is called `name`."""
    rows = {simple(row.name): row for row in known}
    if (key := simple(name)) in rows:
        return rows[key]
    raise _unknown(kind, name, [row.name for row in rows.values()], otherwise)


def _unknown(kind: str, name: str, names: list[str], otherwise: str) -> SpecError:
    from planner.specs.problems import nearest, shown

    near = nearest(name, names)
    return SpecError.of("", f"no {kind} is called {shown(name)}{near}{f' (or {otherwise})' if otherwise else ''}")
