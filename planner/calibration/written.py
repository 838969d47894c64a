"""The cluster file of a calibration: that of the machine, changed in few places, or one made from the runs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from planner.accuracy.errors import Errors
from planner.accuracy.machine import machine
from planner.calibration.fit import Fit
from planner.calibration.rows import Rows
from planner.domain.calibration import Calibration, SizeOfError
from planner.domain.cluster import Link, Network
from planner.specs import catalog
from planner.specs.calibration import calibration_record
from planner.specs.plan import digest
from planner.units import GBIT, MICROSECOND

DIGITS = 4
"""Behind the point, of errors and residuals."""
DIGEST = 12
"""[digits] of the digest of the runs."""
NETWORK = "inter_node_efficiency"
"""Key of the only constant that belongs to the network."""
FRAMEWORK = {"launch_floor_us": MICROSECOND, "elementwise": 1.0, "softmax_bytes": 1.0}
"""Constants that belong to the profile, and their units; the others belong to the device."""


def calibration(fit: Fit) -> Calibration:
    """Return what a cluster keeps of a fit."""
    fitted = [one for one in fit.constants if one.free and fit.helps]
    framework = catalog.framework(fit.rows.framework)
    constants = []
    for one in fitted:
        if one.constant.key in FRAMEWORK:
            key = one.constant.key
            constants.append((key.removesuffix("_us"), one.value * FRAMEWORK[key]))
        if one.constant.key == "elementwise":
            constants.append(("elementwise_inner", round(framework.elementwise_inner * one.factor, DIGITS)))
    return Calibration(
        framework=fit.rows.framework,
        device=fit.rows.device,
        constants=tuple(constants),
        priors=tuple((one.constant.key, one.prior) for one in fitted if one.constant.key not in FRAMEWORK),
        rows=len(fit.rows.used),
        runs=digest([dict(row.run.row) for row in fit.rows.used])[: len("sha256:") + DIGEST],
        error_before=_size(fit.before),
        error_after=_size(fit.after),
        error_cross_validated=_size(fit.cross_validated if fit.helps else fit.before),
        residuals=(round(fit.residuals[0], DIGITS), round(fit.residuals[1], DIGITS), round(fit.residuals[2], DIGITS)),
    )


def _size(errors: Errors) -> SizeOfError:
    assert errors.mape is not None, "there are runs"
    assert errors.median_ape is not None, "there are runs"
    return SizeOfError(mape=round(errors.mape, DIGITS), median=round(errors.median_ape, DIGITS))


def calibrated(record: Mapping[str, Any], index: int, fit: Fit) -> dict[str, Any]:
    """Return the record of a cluster with what was fitted in its group `index`; everything else stays."""
    changed = deepcopy(dict(record))
    changes = {one.constant.key: one.value for one in fit.constants if one.free and fit.helps}
    _change(changed["groups"][index], {key: value for key, value in changes.items() if key not in FRAMEWORK})
    changed["calibration"] = calibration_record(calibration(fit))
    return changed


def uncalibrated(record: Mapping[str, Any], index: int, device: str) -> dict[str, Any]:
    """Return the record of a cluster without its calibration: a new one begins at the same priors.

    The group `index` gets back what it had, if its `device` is the one that was calibrated.
    """
    changed = deepcopy(dict(record))
    earlier = changed.pop("calibration", None)
    if earlier and earlier["device"] == device:
        _change(changed["groups"][index], earlier["priors"])
    return changed


def _change(group: dict[str, Any], changes: Mapping[str, float]) -> None:
    """Change the efficiencies of a group that names its device and its network, or gives them as blocks."""
    device = {key: value for key, value in changes.items() if key != NETWORK}
    if device:
        group["device"] = _block(group["device"], "device", device)
    if NETWORK in changes:
        name = group.get("inter_node") or _usual_network(group["device"])
        group["inter_node"] = _block(name, "network", {"efficiency": changes[NETWORK]})


def _block(written: Any, key: str, changes: Mapping[str, float]) -> dict[str, Any]:
    """Return a block, or a row of the catalogue under `key`, with changes."""
    return {**(written if isinstance(written, dict) else {key: written}), **changes}


def _usual_network(device: Any) -> str:
    return catalog.device_row(device["device"] if isinstance(device, dict) else device).inter_node


def cluster_of(rows: Rows) -> dict[str, Any]:
    """Return the record of the cluster that the runs used: its largest number of nodes, its links as they say."""
    groups = [machine(replace(row.run, busbw_allreduce_gbyte_per_s=None)) for row in rows.used]
    largest = max(groups, key=lambda group: (group.num_nodes, group.devices_per_node))
    record: dict[str, Any] = {
        "device": largest.device.name,
        "nodes": largest.num_nodes,
        "devices_per_node": largest.devices_per_node,
        "intra_node": _link(largest.intra_node),
        **({"inter_node": _network(largest.inter_node)} if largest.num_nodes > 1 else {}),
    }
    return {"groups": [record]}


def _link(link: Link) -> str:
    assert link == catalog.link(link.name), "links of runs are rows of the catalogue"
    return link.name


def _network(network: Network) -> str | dict[str, Any]:
    if network == catalog.network(network.name):
        return network.name
    rate = round(network.bandwidth / network.rails / GBIT, 9)
    return {"network": network.name, "rails": network.rails, "rail_gbit_per_s": rate}
