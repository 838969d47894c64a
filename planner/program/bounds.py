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
from planner.program.subproblem import Assignment, Subproblem

Floats = NDArray[np.float64]
STEPS_FEASIBLE = 12
STEPS_REST = 12
PRECISION = 1e-4
"""[-] relative width at which bisection on the bottleneck stops."""
ROUNDING = 1 - 1e-9
"""[-] keeps bounds valid through the rounding of floats."""


@dataclass(frozen=True)
class Bound:
    """What is known of a subproblem without solving it."""

    value: float
    """[ns] below which no plan's objective lies."""
    bottleneck: float
    """[ns] below which no plan's bottleneck lies."""
    slack: Floats
    """(position, choice, n - 1): [ns] by which taking this column raises the bound, infinite where it cannot be."""
    start: Assignment | None
    """A plan at the smallest bottleneck, if one was met on the way."""


NOTHING = np.zeros((0, 0, 0))


class Bounder:
    """Bounds one subproblem; keeps the arrays that every step needs."""

    def __init__(self, sub: Subproblem) -> None:
        """Prepare the columns' costs."""
        self.sub = sub
        self.layers = np.arange(1, sub.num_layers + 1)
        self.time = sub.positions.time
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

    def bound(self, cutoff: float) -> Bound:
        """Return a bound; plans at or above `cutoff` [ns] are of no interest."""
        pace = self.sub.num_microbatches - 1
        rest, _ = self._rest(NEVER, np.inf)
        highest = float(self.time[self.fits].max(initial=0))
        if np.isfinite(cutoff) and pace:
            highest = min(highest, (cutoff - rest) / pace)
        low, start = self._smallest_bottleneck(highest)
        if not np.isfinite(low):
            return Bound(value=max(rest, cutoff), bottleneck=np.inf, slack=NOTHING, start=None)
        rest, slack = self._rest(highest, cutoff - pace * low)
        value = (pace * low + rest) * ROUNDING - self.sub.rounding
        return Bound(value=value, bottleneck=low, slack=slack, start=start)

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
        """Return the best bound [ns] on the rest with tau <= `limit`, and what each column adds to it.

        The ascent stops as soon as the bound reaches `target`.
        """
        sub = self.sub
        cost = np.where(self.time <= limit, self.cost, np.inf)
        usage = sub.usage.T.astype(float)
        mu, prices = float((cost / self.layers).min()), np.zeros(len(sub.capacity))
        best, best_slack = -np.inf, NOTHING
        rows = np.arange(sub.num_stages)
        scale = 1.0
        for _ in range(STEPS_REST):
            reduced = cost - mu * self.layers + (usage @ prices)[None, :, None]
            flat = reduced.reshape(sub.num_stages, -1)
            chosen = flat.argmin(axis=1)
            lowest = flat[rows, chosen]
            value = float(lowest.sum()) + mu * sub.num_layers - float(prices @ sub.capacity)
            if not np.isfinite(value):
                return np.inf, NOTHING
            if value > best:
                best, best_slack = value, reduced - lowest[:, None, None]
            else:
                scale /= 2
            if best >= target:
                break
            choice, layer = np.divmod(chosen, sub.num_layers)
            missing = sub.num_layers - int(layer.sum()) - sub.num_stages
            excess = usage[choice].sum(axis=0) - sub.capacity
            excess = np.where((prices <= 0) & (excess < 0), 0.0, excess)
            norm = missing**2 + float(excess @ excess)
            if norm == 0:
                break
            goal = target if np.isfinite(target) else value + 0.1 * abs(value)
            step = scale * max(goal - value, 1e-3 * abs(value)) / norm
            mu += step * missing
            prices = np.maximum(0.0, prices + step * excess)
        return best, best_slack


def trim(held: NDArray[np.int64], num_layers: int) -> tuple[int, ...]:
    """Return numbers of layers no larger than `held`, at least one each, that sum to `num_layers`."""
    layers = held.copy()
    for _ in range(int(layers.sum()) - num_layers):
        layers[layers.argmax()] -= 1
    return tuple(int(count) for count in layers)
