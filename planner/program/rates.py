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

from planner.candidates import NEVER, Family, Table

Floats = NDArray[np.float64]
GRID = 48
"""Values of a position that are tried."""


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
) -> Floats:
    """Return (P,) the bound U [layers/ns]; `rates` are (F, choice), minus infinity where a choice cannot be taken.

    `counts` are (P, F): how many positions of each pipeline hold each number of micro-batches.
    """
    ends = {0, len(rates) - 1}
    prices = np.concatenate([device_prices(np.maximum(rates[row], 0.0), usage) for row in sorted(ends)])
    best = (rates[None] - (prices @ usage)[:, None, :]).max(axis=2)
    with np.errstate(invalid="ignore"):
        totals = (prices @ capacity)[None, :] + np.where(counts[:, None, :] > 0, counts[:, None, :] * best, 0.0).sum(2)
    rate: Floats = totals.min(axis=1)
    return rate


def rate_pace(num_layers: int, rate: Floats) -> Floats:
    """Return L / U [ns]; infinite where no layers can pass, since the devices do not suffice."""
    return np.where(rate > 0, num_layers / np.maximum(rate, 1e-300), np.inf)


def held_counts(family: Family, stages: NDArray[np.int64], in_flights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (P, F): how many positions of a pipeline of P stages hold F micro-batches."""
    counts = np.zeros((len(stages), len(in_flights)), dtype=np.int64)
    for row, num_stages in enumerate(stages):
        held = [family.schedule.in_flight(s, int(num_stages), family.num_microbatches) for s in range(num_stages)]
        np.add.at(counts[row], np.searchsorted(in_flights, held), 1)
    return counts


def table_bounds(
    table: Table,
    num_layers: int,
    counts: NDArray[np.int64],
    usage: NDArray[np.int64],
    capacity: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Return bounds [ns] for each P on tau and on the rest of the step, memory and recompute included.

    `counts` are (P, F), as `held_counts` returns them.

    Positions are priced as middle stages, which are the cheapest; infinite where the layers cannot be held.
    """
    time = table.prices(first=False, last=False).time
    layers = np.arange(1, num_layers + 1)
    fits = time < NEVER
    rates = np.where(fits, layers / np.maximum(time, 1), -np.inf).max(axis=2)
    most = np.where(fits, layers, 0).max(axis=(1, 2))
    possible = (counts @ most >= num_layers) & (counts @ (most == 0) == 0)
    rate = best_rates(rates, counts, usage, capacity)
    pace = np.where(possible, rate_pace(num_layers, rate), np.inf)
    return pace, np.full(len(counts), num_layers * np.where(fits, time / layers, np.inf).min())
