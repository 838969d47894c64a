"""The profile of a framework on a cluster, and calibrations as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.domain.calibration import Calibration, SizeOfError
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.specs import catalog
from planner.units import MICROSECOND

if TYPE_CHECKING:
    from planner.specs.cluster_record import CalibrationBlock, ErrorBlock

UNITS = {"launch_floor_us": ("launch_floor", MICROSECOND)}
"""Key -> field of the profile and the unit of the key, where they differ."""
QUANTILES = ("p10", "p50", "p90")
_DIGITS = 9
"""Behind the point, of a figure in the unit of its key."""


def framework_on(cluster: Cluster, name: str) -> Framework:
    """Return the framework called `name` as it runs on `cluster`: the catalogue's, with calibrated constants.

    Raises:
        SpecError: the catalogue has no such framework.

    """
    found = catalog.framework(name)
    return cluster.calibration.applied(found) if cluster.calibration else found


def calibration(block: CalibrationBlock) -> Calibration:
    """Return the calibration of a valid block."""
    constants = block.constants.model_dump(exclude_none=True)
    units = {key: UNITS.get(key, (key, 1.0)) for key in constants}
    return Calibration(
        framework=block.framework,
        device=block.device,
        constants=tuple((units[key][0], value * units[key][1]) for key, value in constants.items()),
        priors=tuple(block.priors.model_dump(exclude_none=True).items()),
        rows=block.rows,
        runs=block.runs,
        error_before=_error(block.error_before),
        error_after=_error(block.error_after),
        error_cross_validated=_error(block.error_cross_validated),
        residuals=(block.residuals.p10, block.residuals.p50, block.residuals.p90),
    )


def calibration_record(found: Calibration) -> dict[str, Any]:
    """Return a calibration as a plain record that `calibration` reads back without loss."""
    return {
        "framework": found.framework,
        "device": found.device,
        "rows": found.rows,
        "runs": found.runs,
        "constants": constants_record(found.constants),
        "priors": dict(found.priors),
        "error_before": _error_record(found.error_before),
        "error_after": _error_record(found.error_after),
        "error_cross_validated": _error_record(found.error_cross_validated),
        "residuals": dict(zip(QUANTILES, found.residuals, strict=True)),
    }


def constants_record(constants: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """Return constants of a profile under their keys, in the units of the keys."""
    keys = {name: (key, unit) for key, (name, unit) in UNITS.items()}
    named = ((*keys.get(name, (name, 1.0)), value) for name, value in constants)
    return {key: round(value / unit, _DIGITS) for key, unit, value in named}


def _error(block: ErrorBlock) -> SizeOfError:
    return SizeOfError(mape=block.mape, median=block.median)


def _error_record(error: SizeOfError) -> dict[str, float]:
    return {"mape": error.mape, "median": error.median}
