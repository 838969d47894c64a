"""What the program knows of a schedule that is given by its passes: its critical paths, as coefficients of prices.

A path of equal stages (`planner.schedules.outline`) holds F, I and W passes forward, backward and for the weights. Of
each, M v - 1 are those of the slowest stage, beside (M v - 1) tau; what is left is spread evenly over the P stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Prices
from planner.schedules import critical_paths, open_microbatches

Floats = NDArray[np.float64]
Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class Critical:
    """Coefficients of the critical paths k of one shape."""

    passes: Floats
    """(k, kind) of f_s, i_s and w_s of every stage."""
    joints: Floats
    """(k,) of x_s and of y_s of every joint."""
    wraps: Floats
    """(k,) of the transfers between the last stage and the first."""
    opened: int
    """Micro-batches of one direction open at once, where a step has more of them; else 0."""

    def fills(self, prices: Prices) -> Ticks:
        """Return (k, F, choice, n) [ns] what a stage adds to the paths beside the passes of the slowest one."""
        return self.of(prices.forward, prices.backward, prices.weight)

    def of(self, forward: Ticks, backward: Ticks, weight: Ticks) -> Ticks:
        """Return (k, ...) the same [ns] of any arrays of times, rounded up; NEVER where a stage does not fit."""
        fits = (forward < NEVER) & (backward < NEVER)
        parts = [np.where(fits, part, 0) for part in (forward, backward - weight, weight)]
        found = sum(np.multiply.outer(self.passes[:, kind], part) for kind, part in enumerate(parts))
        ticks: Ticks = np.where(fits, np.ceil(found), NEVER).astype(np.int64)
        return ticks


def critical(family: Family, num_stages: int) -> Critical | None:
    """Return the coefficients for a family's pipelines of `num_stages`; None if the program has formulas of its own."""
    schedule, batches = family.schedule, family.num_microbatches
    if schedule.orders is None:
        return None
    paths = critical_paths(schedule, num_stages, batches)
    counts = np.array([[path.forward, path.input, path.weight] for path in paths])
    opened = open_microbatches(schedule, num_stages, batches)
    return Critical(
        passes=(counts - family.num_passes + 1) / num_stages,
        joints=np.array([path.joints for path in paths]) / (2 * max(1, num_stages - 1)),
        wraps=np.array([path.wraps for path in paths]) / 2,
        opened=opened if opened * schedule.directions < batches else 0,
    )
