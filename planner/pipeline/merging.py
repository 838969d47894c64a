"""Backward passes in one piece, where that takes no longer than in two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.costs import PlanCost
from planner.domain.plan import Plan
from planner.schedules import BACKWARD, INPUT, WEIGHT, Orders, Pass, schedule_of
from planner.simulate import StageTimes, replay_orders


def whole_where_as_good(orders: Orders, plan: Plan, costs: PlanCost) -> tuple[Orders, float]:
    """Return `orders` with as many backward passes in one piece as leave the step as it is, and the step [s].

    A whole one takes the place of I, and what W held is freed earlier. Frameworks launch it once, and some compile it.
    """
    step = _stepper(plan, costs)
    best, seconds = orders, step(orders)
    for rank, passes in enumerate(orders):
        for one in passes:
            if one.kind != INPUT:
                continue
            tried = tuple(_joined(row, one) if number == rank else row for number, row in enumerate(best))
            if step(tried) <= seconds:
                best = tried
    return best, step(best)


def _joined(passes: tuple[Pass, ...], one: Pass) -> tuple[Pass, ...]:
    """Return the passes of a rank with the two parts of a backward pass in one."""
    late = one._replace(kind=WEIGHT)
    return tuple(run._replace(kind=BACKWARD) if run == one else run for run in passes if run != late)


def _stepper(plan: Plan, costs: PlanCost) -> Callable[[Orders], float]:
    """Return what tells the replayed step [s] of any order of a plan."""
    listed = schedule_of(plan)
    times = {
        (one.direction, one.stage): StageTimes(forward=one.forward, backward=one.backward, weight=one.weight)
        for stage in costs.stages
        for one in stage.hosted
    }
    sync, links = [stage.sync for stage in costs.stages], costs.links

    def step(orders: Orders) -> float:
        given = replace(listed, orders=lambda _stages, _microbatches: orders)
        return replay_orders(given, times, links, sync, plan.num_microbatches).step_time

    return step
