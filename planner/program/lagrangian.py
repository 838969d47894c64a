"""The Lagrangian dual of choosing one column for every position.

    min sum_s cost(s, c_s, n_s)   so that   sum_s n_s = L,   sum_s usage(c_s) <= capacity

has the bound

    phi(mu, pi) = mu L - pi . capacity + sum_s min_{c,n} [ cost(s,c,n) + pi . usage(c) - mu n ]

for every mu and every pi >= 0. For a given pi the best mu is found exactly (the layers chosen grow with mu, so a search
by brackets suffices); pi follows by subgradient ascent with a target that adapts to what is gained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BRACKETS = 16
"""Parts into which each round of the search for mu cuts its interval."""
ROUNDS = 3
BALANCED = 1e-9
"""[-] squared devices by which a fractional plan may miss the capacities and still be taken as the optimum."""
FIRST_GAIN = 0.1
"""[-] of the value, what the first step of the ascent aims to gain."""


@dataclass(frozen=True)
class Dual:
    """Multipliers and the bound that they prove."""

    value: float
    """[ns]"""
    layer_price: float
    """mu [ns]"""
    device_prices: Floats
    """pi [ns], (row,)"""


@dataclass(frozen=True)
class Columns:
    """What a dual is taken of."""

    cost: Floats
    """(position, choice, n - 1) [ns]; infinite where a column is not allowed."""
    usage: Floats
    """(choice, row)"""
    capacity: Floats
    """(row,)"""
    num_layers: int

    def slack(self, dual: Dual) -> Floats:
        """Return (position, choice, n - 1) [ns]: by how much taking a column raises the bound."""
        layers = np.arange(1, self.cost.shape[2] + 1)
        reduced = self.cost - dual.layer_price * layers + (self.usage @ dual.device_prices)[None, :, None]
        lowest: Floats = reduced.min(axis=(1, 2), keepdims=True)
        return reduced - lowest


def maximize(columns: Columns, start: Floats, target: float, steps: int) -> Dual:
    """Return the best dual found in `steps` steps of ascent from the device prices `start`, or at `target` [ns].

    The value is infinite if no column is allowed at some position.
    """
    prices = start
    best = Dual(-np.inf, 0.0, prices)
    delta, failures = 0.0, 0
    for _ in range(steps):
        dual, used = _at_prices(columns, prices)
        if not np.isfinite(dual.value):
            return dual
        delta = delta or FIRST_GAIN * abs(dual.value)
        if dual.value > best.value:
            delta = 1.5 * delta if dual.value - best.value >= delta / 2 else delta
            best, failures = dual, 0
        else:
            failures += 1
            delta, failures = (delta / 2, 0) if failures == 2 else (delta, failures)
        excess = used - columns.capacity
        excess = np.where((prices <= 0) & (excess < 0), 0.0, excess)
        norm = float(excess @ excess)
        if best.value >= target or norm < BALANCED:
            break
        goal = min(best.value + delta, max(target, dual.value))
        step = max(goal - dual.value, 1e-6 * abs(dual.value)) / norm
        prices = np.maximum(0.0, prices + step * excess)
    return best


def _at_prices(columns: Columns, prices: Floats) -> tuple[Dual, Floats]:
    """Return the best dual with these device prices, and the usage of the fractional plan that attains it."""
    reduced = columns.cost + (columns.usage @ prices)[None, :, None]
    base, chosen = reduced.min(axis=1), reduced.argmin(axis=1)
    if not np.isfinite(base.min(axis=1)).all():
        return Dual(np.inf, 0.0, prices), np.zeros_like(prices)
    layers = np.arange(1, base.shape[1] + 1)
    rows = np.arange(base.shape[0])
    sides = []
    for mu in _layer_prices(base, layers, columns.num_layers):
        index = (base - mu * layers).argmin(axis=1)
        value = (base[rows, index] - mu * layers[index]).sum() + mu * columns.num_layers - prices @ columns.capacity
        usage = columns.usage[chosen[rows, index]].sum(axis=0)
        sides.append((Dual(float(value), mu, prices), usage, int(layers[index].sum())))
    (below, used_below, fewer), (above, used_above, more) = sides
    share = 0.0 if more == fewer else float(np.clip((columns.num_layers - fewer) / (more - fewer), 0.0, 1.0))
    return max(below, above, key=lambda dual: dual.value), (1 - share) * used_below + share * used_above


def _layer_prices(base: Floats, layers: NDArray[np.int64], num_layers: int) -> tuple[float, float]:
    """Return two prices of a layer: at the first at most, at the second at least `num_layers` layers are chosen."""
    low, high = 0.0, float(np.where(np.isfinite(base), base, 0.0).max()) + 1.0
    for _ in range(ROUNDS):
        prices = np.linspace(low, high, BRACKETS + 1)
        chosen = (base[None] - prices[:, None, None] * layers).argmin(axis=2) + 1
        index = int(np.searchsorted(chosen.sum(axis=1), num_layers))
        if index in (0, len(prices)):
            edge = float(prices[min(index, len(prices) - 1)])
            return edge, edge
        low, high = float(prices[index - 1]), float(prices[index])
    return low, high
