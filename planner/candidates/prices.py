"""What is priced of a family: the stages in one role, and the positions of one pipeline.

Axes of the arrays, in this order: what is held F, choice, number of slices n (1..). A slice is a layer, or one
layer of each chunk where stages have chunks; times are of one pass, that is of one chunk of n layers (`Family`). Times
are integer nanoseconds, rounded up: a plan is never cheaper than it looks, and a sum of integers is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ticks = NDArray[np.int64]
"""[ns]"""
NEVER = 2**60
"""[ns] the time of what does not fit."""
BASE_POLICIES = ("none", "selective")


class Holding(NamedTuple):
    """What the schedule lets a position hold, and what it costs beside passes."""

    in_flight: int
    """Passes."""
    versions: int = 1
    """Of the weights."""
    predictions: int = 0
    """Of the weights, between two updates."""
    gathers: bool = False
    """Whether predicted weights are gathered once more."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of stages in one role (first, middle, last or only stage of a pipeline)."""

    holdings: tuple[Holding, ...]
    """(F,) ascending: what a stage in this role may hold."""
    forward: Ticks
    """(F, choice, n); NEVER where the stage does not fit."""
    backward: Ticks
    """(F, choice, n) recompute included."""
    weight: Ticks
    """(F, choice, n) the part of it that makes the gradients of weights."""
    sync: Ticks
    """(F, choice, n) the longest exchange of gradients, with what it is for."""
    syncs: Ticks
    """(F, choice, n) all that the stage exchanges, one after the other; more than one where it cannot wait for all."""
    recomputed: NDArray[np.int64]
    """(F, choice, n) layers that must be fully recomputed."""
    policy: NDArray[np.int64]
    """(F, choice, n) index into BASE_POLICIES of the other layers."""

    @cached_property
    def time(self) -> Ticks:
        """(F, choice, n) forward and backward."""
        time: Ticks = np.minimum(self.forward + self.backward, NEVER)
        return time

    def row(self, holding: Holding) -> int:
        """Return where along F the prices of those are that hold so much."""
        return self.holdings.index(holding)


@dataclass(frozen=True)
class Positions:
    """Prices of the positions of one pipeline: arrays over (position, choice, n), stacked when first asked for."""

    first: Prices
    middle: Prices
    last: Prices
    rows: NDArray[np.int64]
    """(position,) row of the prices of its role that each position reads."""
    width: int
    """Largest number of slices of interest."""
    uneven: Ticks
    """(first or last, choice) [ns] by which embedding or head makes one chunk longer than the mean."""
    even: int = 0
    """The only number of layers allowed; zero if any is."""

    def _stack(self, name: str) -> NDArray[np.int64]:
        roles = ((self.first, self.rows[:1]), (self.middle, self.rows[1:-1]), (self.last, self.rows[1:][-1:]))
        array: NDArray[np.int64] = np.concatenate(
            [getattr(prices, name)[rows, :, : self.width] for prices, rows in roles]
        )
        if self.even and name in {"time", "forward", "backward"}:
            others = np.arange(1, self.width + 1) != self.even
            array[:, :, others] = NEVER
        return array

    @cached_property
    def time(self) -> Ticks:
        """[ns] forward and backward."""
        return self._stack("time")

    @cached_property
    def forward(self) -> Ticks:
        """[ns]"""
        return self._stack("forward")

    @cached_property
    def backward(self) -> Ticks:
        """[ns]"""
        return self._stack("backward")

    @cached_property
    def weight(self) -> Ticks:
        """[ns] the part of backward that makes the gradients of weights."""
        return self._stack("weight")

    @cached_property
    def sync(self) -> Ticks:
        """[ns]"""
        return self._stack("sync")

    @cached_property
    def syncs(self) -> Ticks:
        """[ns] all exchanges of a stage, one after the other."""
        return self._stack("syncs")

    @cached_property
    def recomputed(self) -> NDArray[np.int64]:
        """Fully recomputed layers."""
        return self._stack("recomputed")

    @cached_property
    def policy(self) -> NDArray[np.int64]:
        """Index into BASE_POLICIES of the other layers."""
        return self._stack("policy")
