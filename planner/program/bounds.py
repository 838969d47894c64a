"""The bound on one subproblem: the smallest bottleneck that can hold all layers, and the Lagrangian of the rest.

For a bottleneck t, let n_max(s, c, t) be the most layers that position s holds under choice c within t and memory. Then

    sum_s max_c [ n_max(s, c, t) - pi . usage_c ] + pi . capacity >= L        for every pi >= 0

is necessary for a plan with tau <= t; bisection finds where it starts to hold. With t1 <= tau <= t2 the step is at
least

    (M - 1) t1 + mu L - pi . capacity + sum_s min_{c, n: t(s,c,n) <= t2} [ cost(s,c,n) - mu n + pi . usage_c ]

for every mu and pi >= 0, where cost holds the stage's time (or what it adds to the first critical path), its share of
the cheapest transfers, and at position 0 its sync. Dropping the cycles, other paths and syncs only lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER
from planner.program.lagrangian import Columns, maximize
from planner.program.subproblem import Assignment, Subproblem, most_layers

Floats = NDArray[np.float64]
STEPS_FEASIBLE = 12
STEPS_REST = 12
PIECES = 8
"""Intervals into which the bottlenecks of interest are taken apart."""
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
    """[ns] below which no plan's slowest stage lies."""
    tau: float
    """[ns] below which no plan's tau lies."""
    highest: float
    """[ns] above which no bottleneck is of interest."""
    slack: Floats
    """(position, choice, n - 1): [ns] by which taking this column raises the value, infinite where it cannot be."""
    prices: Floats
    """(row,) [ns] what a device is worth, by the multipliers that prove the bound."""
    start: Assignment | None
    """A plan at the smallest bottleneck, if one was met on the way."""


class Bounder:
    """Bounds one subproblem; keeps the arrays that every step needs."""

    def __init__(self, sub: Subproblem, prices: Floats) -> None:
        """Prepare the columns' costs; `prices` (row,) [ns] are where the search for the best multipliers starts."""
        self.sub = sub
        self.time = sub.busy
        self.layers = np.arange(1, self.time.shape[2] + 1)
        self.fits = sub.positions.time < NEVER
        cost = sub.fills[0].astype(float)
        cost[0] += sub.sync[0]
        if sub.num_stages > 1:
            both = sub.crossings[0].sum(axis=0).astype(float)
            leaving, entering = both.min(axis=1) / 2, both.min(axis=0) / 2
            cost[:-1] += leaving[None, :, None]
            cost[1:] += entering[None, :, None]
        self.cost = np.where(self.fits, cost, np.inf)
        self._first_sync = float(sub.sync[0][self.fits[0]].max(initial=0))
        self._layer_prices = np.zeros(len(sub.capacity))
        self._prices = prices

    def bound(self, cutoff: float, highest: float = np.inf, lowest: float = 0.0) -> Bound:
        """Return a bound on the plans below `cutoff` [ns], whose slowest stages take between `lowest` and `highest`."""
        highest = min(highest, float(self.time[self.fits].max(initial=0)))
        closed = Bound(
            value=cutoff,
            bottleneck=highest,
            tau=highest,
            highest=highest,
            slack=NOTHING,
            prices=self._prices,
            start=None,
        )
        possible, start = self._possible(highest)
        if not possible:
            return closed
        # The rest alone closes most subproblems; the smallest bottleneck costs several times as much to find.
        value, tau, slack = self._price(lowest, highest, cutoff)
        if value >= cutoff:
            return replace(closed, value=cutoff, bottleneck=lowest)
        low, found = self._smallest_bottleneck(lowest, highest)
        pace = self.sub.num_passes - 1
        value, tau = value + pace * max(0.0, low - tau) * ROUNDING, max(tau, low)
        return Bound(
            value=value,
            bottleneck=low,
            tau=tau,
            highest=highest,
            slack=slack,
            prices=self._prices,
            start=found or start,
        )

    def _price(self, low: float, highest: float, cutoff: float) -> tuple[float, float, Floats]:
        """Return bounds [ns] on the step and on tau if the slowest stage lies in [low, highest], and the slack.

        The rest R bounds tau too: where all positions hold fewer than M micro-batches, the cycle through the whole
        pipeline says tau >= (sum_s t_s + sum_s (x_s + y_s)) / (w_0 - w_{P-1} + 1).
        """
        pace = self.sub.num_passes - 1
        tau = max(low, self._full_run(highest))
        # A little more than the cutoff, so that what is lost to rounding below does not keep the subproblem open.
        target = (cutoff + self.sub.rounding) * (2 - ROUNDING) + 1
        rest, slack = self._rest(highest, target - pace * tau)
        if not np.isfinite(rest):
            return np.inf, np.inf, NOTHING
        held = self.sub.in_flight
        if self.sub.cycles:
            around = (rest - self._first_sync) / (held[0] - held[-1] + 1)
            tau = max(tau, around * ROUNDING - self.sub.rounding)
        return (pace * tau + rest) * ROUNDING - self.sub.rounding, tau, slack

    def _full_run(self, limit: float) -> float:
        """Return a bound [ns] on tau from the longest run of full positions that no plan can avoid.

        If all positions held as many layers as they can within `limit`, there would be d = sum_s max_c n_max - L too
        many. So at most d positions are not full, and k = ceil((P - d) / (d + 1)) full ones stand in a row: their cycle
        takes at least their fastest choices' times and k - 1 of the cheapest transfers.
        """
        sub, held = self.sub, self.sub.in_flight
        most = most_layers(self.time, limit)
        full = most.max(axis=1)
        spare = int(full.sum()) - sub.num_layers
        if not sub.cycles or sub.num_stages == 1 or not 0 <= spare < sub.num_stages or full.min() == 0:
            return 0.0
        run = -(-(sub.num_stages - spare) // (spare + 1))
        last = np.take_along_axis(self.time, (full - 1)[:, None, None], axis=2)[:, :, 0]
        sums = np.concatenate([[0], np.cumsum(np.where(most == full[:, None], last, NEVER).min(axis=1))])
        hops = 0 if sub.blocking else int((sub.hops[0] + sub.hops[1]).min()) * (run - 1)
        weights = np.array([held[s] - held[s + run - 1] + 1 for s in range(sub.num_stages - run + 1)])
        return float(((sums[run:] - sums[:-run] + hops) / weights).min()) * ROUNDING

    def split(self, bound: Bound, cutoff: float, low: float) -> Bound:
        """Return `bound` made tighter by taking apart the bottlenecks from `low`, a bound on tau, to the highest.

        A bottleneck lies at or above the slowest stage's time, so within [v_i, v_{i+1}) of the sorted times only
        stages up to v_i are allowed: the step is at least (M - 1) v_i + rest(v_i).
        """
        times = np.unique(self.time[(self.time >= low) & (self.time <= bound.highest)])
        if not len(times):
            return replace(bound, value=cutoff, bottleneck=low, tau=low)
        kept = []
        for piece in np.array_split(times, min(PIECES, len(times))):
            value, tau, slack = self._price(max(low, float(piece[0])), float(piece[-1]), cutoff)
            if value < cutoff:
                kept.append((value, tau, float(piece[-1]), slack))
        if not kept:
            return replace(bound, value=cutoff, bottleneck=low, tau=low)
        value, tau, highest = min(k[0] for k in kept), min(k[1] for k in kept), kept[-1][2]
        # A column's slack is measured against its piece's own bound; what must not shrink is the room to the cutoff.
        slack = np.minimum.reduce([k[3] + (k[0] - value) for k in kept])
        return replace(bound, value=value, bottleneck=low, tau=tau, highest=highest, slack=slack)

    def _smallest_bottleneck(self, lowest: float, highest: float) -> tuple[float, Assignment | None]:
        """Return a bound [ns] on the slowest stage between two valid ones, and a plan if one was met on the way."""
        start = None
        low, high = max(lowest, float(self.time.min(axis=(1, 2)).max())), highest
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            possible, found = self._possible(middle)
            start = found or start
            low, high = (low, middle) if possible else (middle, high)
        return low, start

    def _possible(self, limit: float) -> tuple[bool, Assignment | None]:
        """Tell whether a bottleneck of `limit` may be possible; the assignment proves it where one is returned."""
        sub = self.sub
        most = most_layers(self.time, limit)
        if most.max(axis=1).min() == 0:
            return False, None
        value = np.where(most > 0, most, -np.inf)
        prices = self._layer_prices
        for _ in range(STEPS_FEASIBLE):
            reduced = value - prices @ sub.usage
            chosen = reduced.argmax(axis=1)
            total = reduced.max(axis=1).sum() + prices @ sub.capacity
            if total < sub.num_layers - 1e-6:
                self._layer_prices = prices
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
        dual = maximize(columns, self._prices, target, STEPS_REST)
        self._prices = dual.device_prices
        return dual.value, columns.slack(dual) if np.isfinite(dual.value) else NOTHING


def trim(held: NDArray[np.int64], num_layers: int) -> tuple[int, ...]:
    """Return numbers of layers no larger than `held`, at least one each, that sum to `num_layers`."""
    layers = held.copy()
    for _ in range(int(layers.sum()) - num_layers):
        layers[layers.argmax()] -= 1
    return tuple(int(count) for count in layers)
