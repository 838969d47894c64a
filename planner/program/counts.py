"""A bound from counting: how many positions take which choice and how many layers, whatever their order.

Positions with the same prices are one kind u of m_u. With slowest stages in [start, end],

    min (M - 1) tau(h) + sum_{u,c,n} cost(u,c,n) x[u,c,n]
    sum_{c,n} x[u,c,n] = m_u;  sum n x = L;  sum usage(c) x <= capacity;  h = sum of the x with t >= start

bounds the step from below: of P positions, h heavy ones stand at least k = ceil(h / (P - h + 1)) in a row in any order;
their cycle takes tau >= (k start + (k - 1) (x + y)) / (w_s - w_{s+k-1} + 1), with the cheapest transfers. A
few integers stand for a column at every position: milliseconds close what only cycles keep above the cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.program.solver import new_solver, weighted
from planner.program.subproblem import Subproblem

COLUMNS_MAX = 150
"""Where more kinds of columns are left, order matters little beside what they mix, and counting closes nothing."""
EFFORT = 0.03
"""[-] of CP-SAT's deterministic measure."""


def counted_bound(
    sub: Subproblem, cost: NDArray[np.float64], slack_fits: NDArray[np.bool_], start: float, end: float, cutoff: float
) -> float:
    """Return a bound [ns] on plans whose slowest stage lies in [start, end]; `cutoff` if it is reached.

    Args:
        sub: the subproblem.
        cost: (position, choice, n - 1) [ns] what a column adds to the step beside (M - 1) tau.
        slack_fits: whether a plan below the cutoff may take the column.
        start: [ns]
        end: [ns]
        cutoff: [ns]

    """
    model = cp_model.CpModel()
    columns = _columns(model, sub, np.where(slack_fits & (sub.busy <= end), cost, np.inf))
    if len(columns) > COLUMNS_MAX:
        return -np.inf
    model.add(weighted((column.layers, column.count) for column in columns) == sub.num_layers)
    for usage, most in zip(sub.usage, sub.capacity, strict=True):
        model.add(weighted((usage[column.choice], column.count) for column in columns) <= int(most))
    num_heavy = model.new_int_var(0, sub.num_stages, "")
    model.add(num_heavy == sum(column.count for column in columns if column.time >= start))
    paces = heavy_paces(sub, start)
    tau = model.new_int_var(min(paces), max(paces), "")
    model.add_element(num_heavy, paces, tau)
    step = weighted([(sub.num_passes - 1, tau), *((column.cost, column.count) for column in columns)])
    model.add(step <= ceil(cutoff))
    model.minimize(step)
    solver = new_solver(EFFORT)
    if solver.solve(model) == cp_model.INFEASIBLE:
        return cutoff
    return min(cutoff, solver.best_objective_bound - sub.rounding)


@dataclass(frozen=True)
class _Column:
    """How many positions of a kind take a choice with a number of layers."""

    count: cp_model.IntVar
    choice: int
    layers: int
    time: int
    """[ns]"""
    cost: int
    """[ns] rounded down."""


def _columns(model: cp_model.CpModel, sub: Subproblem, cost: NDArray[np.float64]) -> list[_Column]:
    """Return a counted column for every finite entry of every kind of position; the counts of a kind fill it."""
    rows = cost.reshape(sub.num_stages, -1)
    kinds, member = np.unique(rows, axis=0, return_inverse=True)
    member = member.reshape(-1)
    found = []
    for kind, row in enumerate(kinds):
        position, size = int(np.flatnonzero(member == kind)[0]), int((member == kind).sum())
        taken = []
        for index in np.flatnonzero(np.isfinite(row)).tolist():
            choice, layer = divmod(index, cost.shape[2])
            time = int(sub.busy[position, choice, layer])
            count = model.new_int_var(0, size, "")
            taken.append(_Column(count=count, choice=choice, layers=layer + 1, time=time, cost=floor(row[index])))
        model.add(sum(column.count for column in taken) == size)
        found += taken
    return found


def heavy_paces(sub: Subproblem, start: float) -> list[int]:
    """Return tau(h) [ns] for every number h of positions that take at least `start` [ns]."""
    held, stages = sub.in_flight, sub.num_stages
    if not sub.cycles or stages == 1:
        return [floor(start)] * (stages + 1)
    hop = 0 if sub.blocking else int((sub.hops[0] + sub.hops[1]).min())
    paces = []
    for heavy in range(stages + 1):
        run = -(-heavy // (stages - heavy + 1))
        weight = max((held[s] - held[s + run - 1] + 1 for s in range(stages - run + 1)), default=1) if run else 1
        paces.append(max(floor(start), floor((run * start + max(0, run - 1) * hop) / weight) if run else 0))
    return paces
