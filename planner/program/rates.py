"""Cheap bounds on all subproblems of a family at once: how many layers can pass per second at the best.

With r(w, c) the layers per nanosecond that choice c does while it holds w micro-batches, a pipeline passes at most

    U = min_{pi >= 0} [ pi . capacity + sum_s max_c (r(w_s, c) - pi . usage_c) ]

layers per nanosecond (Lagrangian dual of choosing a c for every position within the capacities): tau >= L / U. Any pi
gives a valid bound. Where r does not depend on w the best pi is a function of one number, what a position is worth:

    pi_g(v) = max(0, max_{c in g} (r_c - v) / usage_c)

and a grid of v gives it for all numbers of stages at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Holding, Table, holdings

Floats = NDArray[np.float64]
IMPOSSIBLE = -1e200
"""[layers/ns] the rate of a choice that cannot be taken: finite, so that nothing is multiplied by infinity."""
GRID = 24
"""Values of a position that are tried."""
MU_STEPS, MU_ROUNDS = 8, 3
"""Parts into which each round of the search for a layer's price cuts its interval, and rounds."""


def device_prices(rates: Floats, usage: NDArray[np.int64]) -> Floats:
    """Return (GRID, row): pi(v) for a grid of v up to the fastest rate; `rates` are (choice,)."""
    worth = np.linspace(0.0, float(rates.max()), GRID)
    gain = np.maximum(rates - worth[:, None], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_device = gain[:, None, :] / usage
    prices: Floats = np.where(usage > 0, per_device, 0.0).max(axis=2)
    return prices


def best_rates(
    rates: Floats, counts: NDArray[np.int64], usage: NDArray[np.int64], capacity: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return (P,) the bound U and (P, row) the pi that prove it, both in layers/ns.

    `rates` are (F, choice), minus infinity where a choice cannot be taken; `counts` are (P, F): how many positions of
    each pipeline hold each number of micro-batches.
    """
    ends = {0, len(rates) - 1}
    prices = np.concatenate([device_prices(np.maximum(rates[row], 0.0), usage) for row in sorted(ends)])
    best = np.maximum(rates[None] - (prices @ usage)[:, None, :], IMPOSSIBLE).max(axis=2)
    with np.errstate(invalid="ignore"):
        totals = (prices @ capacity)[None, :] + np.where(counts[:, None, :] > 0, counts[:, None, :] * best, 0.0).sum(2)
    return totals.min(axis=1), prices[totals.argmin(axis=1)]


def rate_pace(num_layers: int, rate: Floats) -> Floats:
    """Return L / U [ns]; infinite where no layers can pass, since the devices do not suffice."""
    return np.where(rate > 0, num_layers / np.maximum(rate, 1e-300), np.inf)


def step_bounds(num_passes: int, paces: Floats, rests: Floats) -> Floats:
    """Return (M - 1) tau + rest [ns]; infinite where tau is, however many passes there are."""
    possible = np.isfinite(paces)
    return np.where(possible, (num_passes - 1) * np.where(possible, paces, 0.0) + rests, np.inf)


def positions_held(family: Family, stages: NDArray[np.int64], possible: tuple[Holding, ...]) -> NDArray[np.int64]:
    """Return (P, F): how many positions of a pipeline of P stages hold each of what is `possible`."""
    counts = np.zeros((len(stages), len(possible)), dtype=np.int64)
    places = {holding: place for place, holding in enumerate(possible)}
    for row, num_stages in enumerate(stages):
        np.add.at(counts[row], [places[holding] for holding in holdings(family, int(num_stages))], 1)
    return counts


def table_bounds(
    table: Table,
    counts: NDArray[np.int64],
    usage: NDArray[np.int64],
    capacity: NDArray[np.int64],
) -> tuple[Floats, Floats, Floats]:
    """Return bounds [ns] for each P on tau and on the rest of the step, and (P, row) what a device is worth [ns].

    Memory and recompute are included. `counts` are (P, F), as `positions_held` returns them.

    Positions are priced as middle stages, which are the cheapest; infinite where the layers cannot be held.
    """
    time = table.prices(first=False, last=False).time
    layers = np.arange(1, table.max_layers + 1)
    fits = time < NEVER
    rates = np.where(fits, layers / np.maximum(time, 1), -np.inf).max(axis=2)
    most = np.where(fits, layers, 0).max(axis=(1, 2))
    possible = (counts @ most >= table.num_layers) & (counts @ (most == 0) == 0)
    rate, prices = best_rates(rates, counts, usage, capacity)
    pace = np.where(possible, rate_pace(table.num_layers, rate), np.inf)
    # A device more raises U by pi, and so takes pi / U off the time of every one of P balanced stages.
    share = counts.sum(axis=1) * np.where(np.isfinite(pace), pace, 0.0) / np.maximum(rate, 1e-300)
    rest = np.full(len(counts), table.num_layers * np.where(fits, time / layers, np.inf).min())
    return pace, rest, prices * share[:, None]


def rest_bounds(
    table: Table,
    counts: NDArray[np.int64],
    usage: NDArray[np.int64],
    capacity: NDArray[np.int64],
    prices: Floats,
    highest: float,
) -> Floats:
    """Return (P,) a bound [ns] on the sum of all stages' times if none is slower than `highest`.

    max_mu [ mu L - pi . capacity + sum_F counts(P, F) min_{c,n} (t(F,c,n) - mu n + pi . usage(c)) ], from (P, row)
    device prices pi that need not be the best. Stages are priced as middle ones.
    """
    time = table.prices(first=False, last=False).time
    used = counts.any(axis=0)
    counts, width = counts[:, used], max(1, int((time <= highest).any(axis=(0, 1)).sum()))
    time = np.where(time[used, :, :width] <= highest, time[used, :, :width], NEVER)
    layers = np.arange(1, width + 1)
    charged = np.where(time < NEVER, time, np.inf)[None] + (prices @ usage)[:, None, :, None]
    base = charged.min(axis=2)
    low, high = np.zeros(len(counts)), np.full(len(counts), np.where(np.isfinite(base), base, 0.0).max() + 1.0)
    steps = np.linspace(0.0, 1.0, MU_STEPS + 1)
    best = np.full(len(counts), -np.inf)
    for _ in range(MU_ROUNDS):
        mus = low[:, None] + (high - low)[:, None] * steps
        reduced = base[:, None] - mus[:, :, None, None] * layers
        index = reduced.argmin(axis=3)
        lowest = np.take_along_axis(reduced, index[..., None], axis=3)[..., 0]
        held = counts[:, None, :]
        total = np.where(held > 0, held * lowest, 0.0).sum(axis=2) + mus * table.num_layers
        best = np.maximum(best, total.max(axis=1))
        enough = (held * (index + 1)).sum(axis=2) >= table.num_layers
        upper = np.where(enough.any(axis=1), enough.argmax(axis=1), MU_STEPS).clip(1)
        rows = np.arange(len(counts))
        low, high = mus[rows, upper - 1], mus[rows, upper]
    return best - prices @ capacity
