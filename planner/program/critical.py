"""What the program knows of a schedule that is given by its passes: its critical paths, as coefficients of prices.

A path of equal stages (`planner.schedules.outline`) holds F, I and W passes forward, backward and for the weights. Of
each, M v - 1 are those of the slowest stage, beside (M v - 1) tau; what is left is spread evenly over the P stages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Positions
from planner.schedules import critical_paths, open_microbatches, remainders, splits_backward

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
    remainders: Floats
    """(which, position, kind) F, I and W passes between the first, or last, virtual stage that a rank has done with and
    the end of the step, where each exchanges for itself; else nothing."""
    split: bool
    """Whether a micro-batch goes on before the gradients of weights are made."""
    opened: int
    """Micro-batches of one direction open at once, where more follow, of the step or of the next one; else 0."""

    def fills(self, positions: Positions) -> Ticks:
        """Return (k, position, choice, n - 1) [ns] what a stage adds to the paths, rounded up."""
        return _weighted(positions, self.passes[:, None, :])

    def sync(self, positions: Positions) -> Ticks:
        """Return (position, choice, n - 1) [ns] from the end of all passes to that of a stage's exchanges.

        They go one after the other: all of them from the first that may begin, and the longest, taken to be the last.
        """
        hidden = np.maximum(0, _weighted(positions, self.remainders))
        exposed = np.maximum(0, np.maximum(positions.syncs - hidden[0], positions.sync - hidden[1]))
        ticks: Ticks = np.where(positions.time < NEVER, exposed, NEVER)
        return ticks


def _weighted(positions: Positions, counts: Floats) -> Ticks:
    """Return (k, position, choice, n - 1) [ns] of so many F, I and W passes (k, position, kind), rounded up."""
    fits = positions.time < NEVER
    parts = (positions.forward, positions.backward - positions.weight, positions.weight)
    found = sum(counts[:, :, kind, None, None] * np.where(fits, part, 0) for kind, part in enumerate(parts))
    ticks: Ticks = np.where(fits, np.ceil(found), NEVER).astype(np.int64)
    return ticks


def _remainders(family: Family, num_stages: int) -> Floats:
    schedule = family.schedule
    if not schedule.eager_sync:
        return np.zeros((2, num_stages, 3))
    found = np.array(remainders(schedule, num_stages, family.num_microbatches), dtype=float)
    order = np.argsort(found.sum(axis=2), axis=1, kind="stable")
    rows = np.arange(num_stages)
    return np.stack([found[rows, order[:, -1]], found[rows, order[:, 0]]])


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
        remainders=_remainders(family, num_stages),
        split=splits_backward(schedule),
        opened=opened if opened * schedule.directions < batches or not schedule.flushes else 0,
    )
