"""Find the best order of a shop, from orders that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.program.order.bound import least_step
from planner.program.order.model import OrderModel, build
from planner.program.order.shop import Shop, fits, split, step_of, timed
from planner.program.solver import new_solver
from planner.schedules import Orders


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """What is known of the best order."""

    orders: Orders | None
    """The best one found; None if there is none, or none was found."""
    bound: int
    """[ns] below which no order's step lies."""
    impossible: bool = False
    """Whether it is proved that no order finds room."""


def find_order(shop: Shop, known: Sequence[Orders], gap: float, *, effort: float, time_limit: float = 0.0) -> Ordered:
    """Return the best order of `shop`, within `gap` of the bound or after `effort` in the solver's measure.

    The best of the `known` orders that find room is what the search begins with, so that the result is never slower. A
    `time_limit` [s] gives up that the same input gives the same answer on any machine.
    """
    if not shop.is_possible:
        return Ordered(orders=None, bound=0, impossible=True)
    begun = [
        (step_of(shop, starts), starts, orders)
        for orders, starts in ((one, timed(shop, one)) for one in known if fits(shop, one))
    ]
    best = min(begun, key=lambda one: one[0], default=None)
    least = least_step(shop)
    if best is not None and best[0] <= least * (1 + gap):
        return Ordered(orders=split(best[2]), bound=least)
    horizon = best[0] if best else _one_by_one(shop)
    made = build(shop, horizon)
    if best is not None:
        for one, start in made.starts.items():
            made.model.add_hint(start, best[1][one])
        made.model.add_hint(made.step, best[0])
    solver = new_solver(effort, gap=gap, time_limit=time_limit)
    status = solver.solve(made.model)
    assert status not in {cp_model.MODEL_INVALID, cp_model.INFEASIBLE}, made.model.validate()
    bound = max(least, int(solver.best_objective_bound))
    if status == cp_model.UNKNOWN:
        return Ordered(orders=split(best[2]) if best else None, bound=bound)
    orders = _orders(made, solver)
    if best is not None and step_of(shop, timed(shop, orders)) > best[0]:
        orders = split(best[2])  # links that are slower than passes are freer in the program than they are
    return Ordered(orders=orders, bound=bound)


def _one_by_one(shop: Shop) -> int:
    """Return [ns] of the step in which each micro-batch begins when the last one has ended."""
    last = len(shop.ranks) - 1
    hops = sum(shop.hop(stage, stage + 1) + shop.hop(stage + 1, stage) for stage in range(last))
    return (sum(map(sum, shop.times)) + hops) * shop.num_microbatches + max(shop.sync)


def _orders(made: OrderModel, solver: cp_model.CpSolver) -> Orders:
    """Return the passes of every rank, in the order in which the solver has them begin."""
    begins = sorted((solver.value(start), one) for one, start in made.starts.items())
    ranks = range(made.shop.num_ranks)
    return tuple(tuple(one for _, one in begins if made.shop.ranks[one.stage] == rank) for rank in ranks)
