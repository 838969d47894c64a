"""What measured runs say of a machine under a framework: constants of the profile, and how far predictions were off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from planner.domain.framework import Framework


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOfError:
    """The size of predicted / measured - 1 over runs."""

    mape: float
    """[-] mean."""
    median: float
    """[-]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was fitted to runs on one kind of device under one framework."""

    framework: str
    """Name of the profile."""
    device: str
    """Name of the device, whose efficiencies stand in its groups."""
    constants: tuple[tuple[str, float], ...]
    """Field of the profile -> its value on this machine, in the units of `Framework`."""
    priors: tuple[tuple[str, float], ...]
    """[-] efficiency of device or network, by its key in the cluster file -> what it was before."""
    rows: int
    """Runs that were used."""
    runs: str
    """Digest of these runs."""
    error_before: SizeOfError
    error_after: SizeOfError
    """On the runs that the constants were fitted to."""
    error_cross_validated: SizeOfError
    """On runs that the constants were not fitted to."""
    residuals: tuple[float, float, float]
    """[-] 10th, 50th and 90th percentile of measured / predicted, on runs that the constants were not fitted to."""

    def applied(self, framework: Framework) -> Framework:
        """Return the profile as it is on this machine; another profile stays as it is."""
        if framework.name != self.framework:
            return framework
        changes: dict[str, Any] = dict(self.constants)
        return replace(framework, **changes)
