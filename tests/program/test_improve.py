"""Small changes make plans better and nothing else."""

import numpy as np
import pytest
from cases import drawn

from planner.candidates import NEVER
from planner.errors import NoFeasiblePlan
from planner.program import Search
from planner.program.evaluation import evaluate, objectives
from planner.program.improve import improve
from planner.program.subproblem import Assignment, is_allowed


@pytest.mark.parametrize("seed", range(40))
def test_improved_plans_are_plans_and_no_worse(seed: int) -> None:
    """An improved plan holds all layers, keeps every limit, and is never slower than where it started."""
    try:
        found = Search(drawn(seed).space, 0.3).run().found
    except NoFeasiblePlan:
        found = []
    for one in found[-3:]:
        better = improve(one.sub, one.assignment)
        assert sum(better.layers) == one.sub.num_layers
        assert min(better.layers) >= 1
        assert better == one.assignment or is_allowed(one.sub, better)
        assert evaluate(one.sub, better) <= one.objective


def test_what_does_not_fit_costs_never() -> None:
    """A stage of more layers than any device can hold has no price, alone among others that have one."""
    sub = Search(drawn(1).space, 0.3).run().found[0].sub
    good = Search(drawn(1).space, 0.3).run().found[0].assignment
    layers = np.array([good.layers, [10**6] * sub.num_stages])
    values = objectives(sub, np.array([good.choices] * 2), layers)
    assert values[0] == evaluate(sub, Assignment(good.choices, good.layers))
    assert values[1] == NEVER
