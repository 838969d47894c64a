"""The bound on one subproblem: the smallest bottleneck that can hold all layers, and the Lagrangian of the rest.

For a bottleneck t, let n_max(s, c, t) be the most layers that position s holds under choice c within t and memory. Then

    sum_s max_c [ n_max(s, c, t) - pi . usage_c ] + pi . capacity >= L        for every pi >= 0

is necessary for a plan with tau <= t; bisection finds where it starts to hold. With t1 <= tau <= t2 the step is at least

    (M - 1) t1 + mu L - pi . capacity + sum_s min_{c, n: t(s,c,n) <= t2} [ cost(s,c,n) - mu n + pi . usage_c ]

for every mu and pi >= 0, where cost holds the stage's time, its share of the cheapest transfers, and at position 0 its
sync. Dropping the cycles and the other syncs only lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER
from planner.program.lagrangian import Columns, maximize
from planner.program.subproblem import Assignment, Subproblem

Floats = NDArray[np.float64]
STEPS_FEASIBLE = 12
STEPS_REST = 24
PRECISION = 1e-4
"""[-] relative width at which bisection on the bottleneck stops."""
ROUNDING = 1 - 1e-9
"""[-] keeps bounds valid through the rounding of floats."""
NOTHING = np.zeros((0, 0, 0))


@dataclass(frozen=True)
class Bound:
    """What is known of a subproblem without solving it."""

    value: float
    """[ns] below which no plan's objective lies."""
    bottleneck: float
    """[ns] below which no plan's bottleneck lies."""
    highest: float
    """[ns] above which no bottleneck is of interest."""
    slack: Floats
    """(position, choice, n - 1): [ns] by which taking this column raises the bound, infinite where it cannot be."""
    start: Assignment | None
    """A plan at the smallest bottleneck, if one was met on the way."""


class Bounder:
    """Bounds one subproblem; keeps the arrays that every step needs."""

    def __init__(self, sub: Subproblem) -> None:
        """Prepare the columns' costs."""
        self.sub = sub
        self.time = sub.positions.time
        self.layers = np.arange(1, self.time.shape[2] + 1)
        self.fits = self.time < NEVER
        cost = self.time.astype(float)
        cost[0] += sub.positions.sync[0]
        if sub.num_stages > 1:
            both = (sub.hops[0] + sub.hops[1]).astype(float)
            leaving, entering = both.min(axis=1) / 2, both.min(axis=0) / 2
            cost[:-1] += leaving[None, :, None]
            cost[1:] += entering[None, :, None]
        self.cost = np.where(self.fits, cost, np.inf)
        self._prices = np.zeros(len(sub.capacity))

    def bound(self, cutoff: float, highest: float = np.inf) -> Bound:
        """Return a bound on the plans below `cutoff` [ns], whose bottlenecks stay below `highest` [ns]."""
        pace = self.sub.num_microbatches - 1
        highest = min(highest, float(self.time[self.fits].max(initial=0)))
        nothing = Bound(value=cutoff, bottleneck=np.inf, highest=highest, slack=NOTHING, start=None)
        low, start = self._smallest_bottleneck(highest)
        if not np.isfinite(low):
            return nothing
        # A little more than the cutoff, so that what is lost to rounding below does not keep the subproblem open.
        rest, slack = self._rest(highest, (cutoff + self.sub.rounding) * (2 - ROUNDING) + 1 - pace * low)
        if not np.isfinite(rest):
            return nothing
        value = (pace * low + rest) * ROUNDING - self.sub.rounding
        return Bound(value=value, bottleneck=low, highest=highest, slack=slack, start=start)

    def _smallest_bottleneck(self, highest: float) -> tuple[float, Assignment | None]:
        """Return a bound on tau [ns], infinite if none up to `highest` will do, and a plan if one was met."""
        possible, start = self._possible(highest)
        if not possible:
            return np.inf, None
        low, high = float(self.time.min(axis=(1, 2)).max()), highest
        if high < low:
            return np.inf, None
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            possible, found = self._possible(middle)
            start = found or start
            low, high = (low, middle) if possible else (middle, high)
        return low, start

    def _possible(self, limit: float) -> tuple[bool, Assignment | None]:
        """Tell whether a bottleneck of `limit` may be possible; the assignment proves it where one is returned."""
        sub = self.sub
        most = (self.time <= limit).sum(axis=2)
        if most.max(axis=1).min() == 0:
            return False, None
        value = np.where(most > 0, most, -np.inf)
        prices = self._prices
        for _ in range(STEPS_FEASIBLE):
            reduced = value - prices @ sub.usage
            chosen = reduced.argmax(axis=1)
            total = reduced.max(axis=1).sum() + prices @ sub.capacity
            if total < sub.num_layers - 1e-6:
                self._prices = prices
                return False, None
            spare = sub.capacity - sub.usage[:, chosen].sum(axis=1)
            held = most[np.arange(sub.num_stages), chosen]
            if (spare >= 0).all() and held.sum() >= sub.num_layers:
                return True, Assignment(tuple(chosen.tolist()), trim(held, sub.num_layers))
            step = (total - sub.num_layers + 0.5) / max(1.0, float(spare @ spare))
            prices = np.maximum(0.0, prices - step * spare)
        return True, None

    def _rest(self, limit: float, target: float) -> tuple[float, Floats]:
        """Return a bound [ns] on the rest with tau <= `limit`, no better than `target`, and each column's slack."""
        columns = Columns(
            cost=np.where(self.time <= limit, self.cost, np.inf),
            usage=self.sub.usage.T.astype(float),
            capacity=self.sub.capacity.astype(float),
            num_layers=self.sub.num_layers,
        )
        dual = maximize(columns, target, STEPS_REST)
        return dual.value, columns.slack(dual) if np.isfinite(dual.value) else NOTHING


def trim(held: NDArray[np.int64], num_layers: int) -> tuple[int, ...]:
    """Return numbers of layers no larger than `held`, at least one each, that sum to `num_layers`."""
    layers = held.copy()
    for _ in range(int(layers.sum()) - num_layers):
        layers[layers.argmax()] -= 1
    return tuple(int(count) for count in layers)
