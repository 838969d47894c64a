"""How near the program's objective comes to the replay where a schedule is given by its passes."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from exhaustive import Exhaustive
from test_walked_schedules import NAMES, problem

from planner.costs import plan_cost
from planner.simulate import predict

NEAR = 0.3
"""Slowest transfer there and back, over a pass, below which transfers are fast."""


@cache
def ratios(name: str) -> tuple[tuple[float, float], ...]:
    """Return objective over replay of random pipelines, and the slowest transfer there and back over the mean pass."""
    draw, found = random.Random(1), []
    for seed in range(9000, 9060):
        asked = problem(seed, name)
        exhaustive = Exhaustive(asked)
        for plans in exhaustive.all_plans():
            objectives = plans.objectives
            for row in {int(objectives.argmin()), draw.randrange(len(objectives))}:
                plan = exhaustive.plan(plans, row)
                costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
                observed = predict(plan, costs, asked.cluster, asked.model, asked.job).step_time - costs.step_overhead
                slowest = max(hop.forward + hop.backward for hop in costs.hops)
                found.append(
                    (float(objectives[row]) / observed, slowest / float((plans.forward + plans.backward)[row].mean()))
                )
    return tuple(found)


def test_the_objective_is_near_the_replay() -> None:
    """What docs/formulation.md says of number, means and extremes."""
    found = {name: np.array(ratios(name)) for name in NAMES}
    quick = {name: ratio[near, 0] for name, ratio in found.items() if (near := ratio[:, 1] < NEAR).any()}
    slow = np.concatenate([ratio[ratio[:, 1] >= NEAR, 0] for ratio in found.values()])
    alike = np.concatenate(list(quick.values()))
    assert (len(alike), len(slow)) == (868, 1047)
    means = {name: float(ratio.mean()) for name, ratio in quick.items()}
    assert (min(means.values()), max(means.values())) == pytest.approx((0.979, 1.088), abs=1e-3)
    assert alike.mean() == pytest.approx(1.016, abs=1e-3)
    assert np.quantile(alike, [0, 0.05, 0.95, 1]) == pytest.approx([0.866, 0.983, 1.089, 1.222], abs=1e-3)
    assert slow.mean() == pytest.approx(1.029, abs=1e-3)
    assert np.quantile(slow, [0, 0.05, 0.95, 1]) == pytest.approx([0.587, 0.893, 1.169, 1.353], abs=1e-3)
