"""Cheap bounds on all subproblems of a family at once: how many layers can pass per second at the best.

With r_c the layers per nanosecond that choice c does, a pipeline of P stages passes at most

    U(P) = min_{pi >= 0} [ pi . capacity + sum_s max_c (r_c - pi . usage_c) ]

layers per nanosecond (Lagrangian dual of choosing a c for every stage within the capacities), so tau >= L / U(P). Any
pi gives a valid bound; coordinate descent over the breakpoints finds the best one when one capacity matters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Table

Floats = NDArray[np.float64]
SWEEPS = 2


def best_multipliers(
    rates: Floats, usage: NDArray[np.int64], capacity: NDArray[np.int64], stages: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return U(P) for every P of `stages`, and the (P, row) multipliers that prove it."""
    first, second = np.triu_indices(len(rates), k=1)
    prices = np.zeros((len(stages), len(capacity)))
    value = stages * rates.max()
    for _ in range(SWEEPS):
        for row in range(len(capacity)):
            others = [r for r in range(len(capacity)) if r != row]
            reduced = rates - prices[:, others] @ usage[others]
            base = prices[:, others] @ capacity[others]
            slope = usage[row, first] - usage[row, second]
            with np.errstate(divide="ignore", invalid="ignore"):
                points = (reduced[:, first] - reduced[:, second]) / slope
            points = np.where(np.isfinite(points) & (points > 0), points, 0.0)
            points = np.concatenate([points, prices[:, [row]], np.zeros((len(stages), 1))], axis=1)
            best = (reduced[:, None, :] - points[:, :, None] * usage[row]).max(axis=2)
            totals = base[:, None] + points * capacity[row] + stages[:, None] * best
            chosen = totals.argmin(axis=1)
            prices[:, row] = points[np.arange(len(stages)), chosen]
            value = totals[np.arange(len(stages)), chosen]
    return value, prices


def rate_bounds(
    num_layers: int, num_microbatches: int, layer_time: Floats, edge_time: float, rate: Floats
) -> Floats:
    """Return the bound [ns] on the step for each P: (M - 1) L / U(P) + L min_c t_c + edges."""
    rest = num_layers * layer_time.min() + edge_time
    bound: Floats = (num_microbatches - 1) * num_layers / rate + rest
    return bound


def held_counts(family: Family, stages: NDArray[np.int64], in_flights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (P, F): how many positions of a pipeline of P stages hold F micro-batches."""
    counts = np.zeros((len(stages), len(in_flights)), dtype=np.int64)
    for row, num_stages in enumerate(stages):
        held = [family.schedule.in_flight(s, int(num_stages), family.num_microbatches) for s in range(num_stages)]
        np.add.at(counts[row], np.searchsorted(in_flights, held), 1)
    return counts


def table_bounds(
    table: Table, num_layers: int, stages: NDArray[np.int64], capacity: NDArray[np.int64], usage: NDArray[np.int64],
    multipliers: Floats,
) -> Floats:
    """Return the bound [ns] for each P of `stages` from a family's prices, memory and recompute included.

    Positions are priced as middle stages, which are the cheapest; infinite where the layers cannot be held.
    """
    time = table.prices(first=False, last=False).time
    layers = np.arange(1, num_layers + 1)
    fits = time < NEVER
    rates = np.where(fits, layers / np.maximum(time, 1), 0.0).max(axis=2)
    most = np.where(fits, layers, 0).max(axis=(1, 2))
    counts = held_counts(table.family, stages, table.in_flights)
    reduced = (rates[None, :, :] - (multipliers @ usage)[:, None, :]).max(axis=2)
    rate = multipliers @ capacity + (counts * reduced).sum(axis=1)
    fastest = np.where(fits, time / layers, np.inf).min()
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = (table.family.num_microbatches - 1) * num_layers / np.maximum(rate, 1e-300) + num_layers * fastest
    possible = (counts @ most >= num_layers) & (counts @ (most == 0) == 0)
    return np.where(possible, bound, np.inf)
