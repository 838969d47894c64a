"""From measured runs, and the cluster that they ran on if it is known, to a calibrated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.accuracy.run import Run
from planner.calibration.fit import Fit, fit
from planner.calibration.rows import Rows, group_of, placed, usable
from planner.calibration.written import calibrated, cluster_of, uncalibrated
from planner.domain.cluster import Cluster, DeviceGroup
from planner.errors import SpecError
from planner.specs.cluster import cluster_from_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A cluster as it is written."""

    origin: str
    cluster: Cluster
    record: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What runs say, and the record of the cluster that holds it."""

    fit: Fit
    record: dict[str, Any]


def calibrate(
    runs: Sequence[Run], machine: Machine | None, *, device: str = "", framework: str = "", flagged: bool = False
) -> Calibrated:
    """Return what `runs` say of `machine`, or of the machine that they describe.

    Args:
        runs: measured runs.
        machine: the cluster whose device and links the runs used; None if the runs alone tell.
        device: name in the catalogue of the only device whose runs are used; empty if there is only one.
        framework: name of the only profile whose runs are used; empty if there is only one.
        flagged: whether doubtful runs are used.

    Raises:
        SpecError: too few runs can be used, they are of several machines, or `machine` is another one.

    """
    rows = usable(runs, device=device, framework=framework, flagged=flagged)
    if machine is None:
        record, index = cluster_of(rows), 0
    else:
        index = machine.cluster.groups.index(group_of(machine.cluster, rows.device, machine.origin))
        record = uncalibrated(machine.record, index, rows.device)
        group = cluster_from_record(record, machine.origin).groups[index]
        _refuse_missing_network(group, rows, machine.origin)
        rows = placed(rows, group)
    found = fit(rows)
    return Calibrated(fit=found, record=calibrated(record, index, found))


def _refuse_missing_network(group: DeviceGroup, rows: Rows, origin: str) -> None:
    """Stop where runs of several nodes are to be placed on a group without a network.

    Raises:
        SpecError: they are.

    """
    if group.inter_node.name == "none" and any(row.setting.layout.group.num_nodes > 1 for row in rows.used):
        raise SpecError.of(origin, f"has no network for {group.name}, whose runs used several nodes; add inter_node")
