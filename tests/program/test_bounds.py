"""Every bound against the plans that it bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from cases import allowance, best_row, columns_of, families, judge, plans_of, subproblems
from exhaustive import Exhaustive, Plans

from planner.program.bottleneck import smallest_bottleneck
from planner.program.bounds import Bounder
from planner.program.search import Search
from planner.program.sets import FamilySet
from planner.program.solve import useful_columns
from planner.program.subproblem import Subproblem
from planner.units import NANOSECOND

SEEDS = range(5000, 5040)


def slack_of(plans: Plans) -> int:
    return allowance(plans.setting.passes, plans.setting.chunks * plans.setting.stages)


def bounder(sub: Subproblem) -> Bounder:
    """Return a bounder that begins with devices that cost nothing."""
    return Bounder(sub, np.zeros(len(sub.capacity)))


def rests(plans: Plans) -> float:
    """Return [ns] the smallest part of the step beside (M - 1) tau."""
    least: float = (plans.objectives - (plans.setting.passes - 1) * plans.bottlenecks).min()
    return least / NANOSECOND


def family_sets(seed: int) -> Iterator[tuple[Exhaustive, Search, FamilySet]]:
    """Yield the sets that a search opens, with a search that has met nothing."""
    exhaustive = judge(seed)
    if exhaustive.options:
        search = Search(exhaustive.asked.space, 0.0)
        search.meet = lambda *_, **__: None  # type: ignore[method-assign] (the cutoff is the test's)
        for entry in list(search._refiner.families()):
            search.best = np.inf  # what is priced under a cutoff holds below it only
            yield exhaustive, search, entry


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_by_rates_are_below_every_plan(seed: int) -> None:
    """The bounds that need no prices, on tau, on the rest and on the step, hold for every plan; no plan is left out."""
    opened = {}
    for exhaustive, _, entry in family_sets(seed):
        for index, stages in enumerate(entry.stages.tolist()):
            plans = plans_of(exhaustive, entry.family, stages)
            opened[entry.family, stages] = plans
            if len(plans.layers):
                slack = slack_of(plans)
                assert entry.paces[index] <= plans.slowest_stages.min() / NANOSECOND + slack
                assert entry.rests[index] <= rests(plans) + slack
                assert entry.bounds[index] <= best_row(plans)[1] + slack
    exhaustive = judge(seed)
    for family, stages in families(exhaustive.asked.space) if exhaustive.options else ():
        assert (family, stages) in opened or not len(plans_of(exhaustive, family, stages).layers)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_by_tables_are_below_every_plan(seed: int) -> None:
    """The bounds of priced families hold for every plan, and no number of stages is left out for which there is one."""
    for exhaustive, search, family in family_sets(seed):
        priced = {entry.num_stages: entry for entry in search._refiner.price(family)}
        for stages in family.stages.tolist():
            plans = plans_of(exhaustive, family.family, stages)
            if len(plans.layers):
                slack, entry = slack_of(plans), priced[stages]
                assert entry.pace <= plans.slowest_stages.min() / NANOSECOND + slack
                assert entry.rest <= rests(plans) + slack
                assert entry.bound <= best_row(plans)[1] + slack


@pytest.mark.parametrize("seed", SEEDS)
def test_lagrangian_bound_is_below_every_plan(seed: int) -> None:
    """With no cutoff, with one above the optimum and with one below it, the bound stays below the best plan."""
    for sub, plans in subproblems(seed):
        best, slack = best_row(plans)[1], slack_of(plans)
        for cutoff in (1e15, 1.2 * best, 0.9 * best):
            bound = bounder(sub).bound(cutoff)
            assert bound.value <= best + slack
            if cutoff > best + slack:
                assert bound.bottleneck <= plans.slowest_stages.min() / NANOSECOND + slack


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_an_optimal_plan_are_useful(seed: int) -> None:
    """The filter by slack drops no column of a plan that beats the cutoff."""
    for sub, plans in subproblems(seed):
        row, best = best_row(plans)
        cutoff = best + slack_of(plans) + 1
        bound = bounder(sub).bound(cutoff)
        assert set(columns_of(plans, row)) <= set(useful_columns(bound, cutoff))


@pytest.mark.parametrize("seed", SEEDS)
def test_refined_sets_keep_their_best_plan(seed: int) -> None:
    """Through every refinement, the solver cut short included, bounds and columns leave room for a set's best plan."""
    for exhaustive, search, family in family_sets(seed):
        refiner = search._refiner
        for entry in list(refiner.price(family)):
            plans = plans_of(exhaustive, entry.table.family, entry.num_stages)
            if not len(plans.layers):
                continue
            row, best = best_row(plans)
            slack = slack_of(plans)

            opened: list[object] = [entry]
            for step in (refiner.bound, refiner.tighten, refiner.solve):
                search.best, search.result.lower_bound = best + 2 * slack, np.inf
                if step == refiner.solve:
                    opened = [replace(one, effort=1e-5) for one in opened]
                opened = [child for parent in opened for child in step(parent)]
                assert opened or search.result.lower_bound <= best + 2 * slack
                for child in opened:
                    assert child.known.value <= best + slack
                    useful = set(useful_columns(child.known, best + slack))
                    assert set(columns_of(plans, row)) <= useful, step


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_known_of_tau_takes_nothing_away(seed: int) -> None:
    """A bound that was known before, better than the Lagrangian's, is no reason to drop columns or bottlenecks."""
    for exhaustive, search, family in family_sets(seed):
        refiner = search._refiner
        for entry in list(refiner.price(family)):
            plans = plans_of(exhaustive, entry.table.family, entry.num_stages)
            if not len(plans.layers):
                continue
            row, best = best_row(plans)
            slack = slack_of(plans)
            known = replace(entry, bound=best - 1)
            for step in (refiner.bound, refiner.tighten):
                search.best = best + 2 * slack
                known = next(iter(step(known)), None)
                assert known is not None, step
                assert set(columns_of(plans, row)) <= set(useful_columns(known.known, best + slack)), step


@pytest.mark.parametrize("seed", SEEDS)
def test_smallest_bottleneck_is_below_every_plan(seed: int) -> None:
    """No plan's slowest stage is faster than the smallest bottleneck, and the plan that is returned is a plan."""
    for sub, plans in list(subproblems(seed))[::3]:
        slowest, slack = plans.slowest_stages.min() / NANOSECOND, slack_of(plans)
        low, start = smallest_bottleneck(sub, float(sub.positions.time.min()), 3 * slowest + slack)
        assert low <= slowest + slack
        if start is not None:
            assert sum(start.layers) == sub.num_layers
            assert min(start.layers) >= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bottleneck_below_every_plan_is_refused_or_bounded(seed: int) -> None:
    """Asked for a bottleneck that no plan reaches, the answer is never above what the slowest stage must take."""
    for sub, plans in list(subproblems(seed))[::3]:
        slowest, slack = plans.slowest_stages.min() / NANOSECOND, slack_of(plans)
        low, _ = smallest_bottleneck(sub, 0.5 * slowest, slowest + slack)
        assert low <= slowest + slack
