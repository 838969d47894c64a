"""Random problems with their proved optimum, judged once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from exhaustive import Exhaustive, Plans, Setting

from builders import Planning, drawn
from planner.candidates import Family, Space
from planner.checks import Context, run_checks
from planner.costs import plan_cost
from planner.errors import NoFeasiblePlan
from planner.program import Result, Search, decode
from planner.program.subproblem import Subproblem, build_subproblem
from planner.program.variables import Column
from planner.units import NANOSECOND


@cache
def judge(seed: int, target: bool = False, most_devices: int = 8, most_layers: int = 8) -> Exhaustive:
    return Exhaustive(drawn(seed, target=target, most_devices=most_devices, most_layers=most_layers))


@cache
def optimum(seed: int, target: bool = False) -> float:
    """Return [ns] the smallest objective of a problem."""
    return judge(seed, target).optimum / NANOSECOND


def searched(asked: Planning, gap: float = 0.0) -> Result:
    """Return what the search knows; nothing found where there is not even a choice."""
    try:
        return Search(asked.space, gap).run()
    except NoFeasiblePlan:
        return Result()


def allowance(num_passes: int, num_stages: int) -> int:
    """Return [ns] by which prices in whole nanoseconds may raise an objective: some 5 a pass and a stage."""
    return 5 * (num_passes + num_stages) + 5


def largest_allowance(asked: Planning) -> int:
    chunks = asked.model.num_layers // 2
    return allowance(max(1, chunks) * asked.job.global_batch, max(1, chunks) * asked.model.num_layers)


def check_optimum(asked: Planning) -> Result:
    """Hold a search to exhaustive search: the same optimum, no bound above it, and all plans met pass the checks."""
    best, result = Exhaustive(asked).optimum / NANOSECOND, searched(asked)
    found = min((found.objective for found in result.found), default=np.inf)
    assert found == pytest.approx(best, rel=1e-9, abs=largest_allowance(asked))
    assert result.lower_bound <= best + largest_allowance(asked)
    for one in result.found:
        plan = decode(asked.space, one)
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        context = Context(plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.stages)
        assert not run_checks(context), plan
    return result


def families(space: Space) -> Iterator[tuple[Family, int]]:
    """Yield each family with each of its numbers of stages."""
    for family in space.families:
        yield from ((family, stages) for stages in space.stage_counts(family) if space.allows_stages(stages))


def plans_of(exhaustive: Exhaustive, family: Family, stages: int) -> Plans:
    """Return all plans of a subproblem, their options numbered as in the family."""
    plans = exhaustive.plans(
        Setting(
            family.schedule.name,
            family.zero_stage,
            family.num_replicas,
            family.micro_batch,
            family.num_microbatches,
            stages,
            family.restriction.recompute,
            family.schedule.virtual_stages,
        )
    )
    numbers = np.full(len(exhaustive.options), -1)
    numbers[list(family.restriction.choices)] = range(len(family.restriction.choices))
    own = (numbers[plans.options] >= 0).all(axis=1)
    arrays = {name: getattr(plans, name)[own] for name in Plans.__dataclass_fields__ if name != "setting"}
    return replace(plans, **{**arrays, "options": numbers[plans.options[own]]})


def subproblems(seed: int, most_devices: int = 8, most_layers: int = 8) -> Iterator[tuple[Subproblem, Plans]]:
    """Yield the subproblems of a random problem that have plans, with all of these."""
    exhaustive = judge(seed, most_devices=most_devices, most_layers=most_layers)
    if not exhaustive.options:
        return
    space = exhaustive.asked.space
    assert [(c.group.name, c.width) for c in space.choices] == [(o.group.name, o.width) for o in exhaustive.options]
    tables = {}
    for family, stages in families(space):
        plans = plans_of(exhaustive, family, stages)
        if len(plans.layers):
            if family not in tables:
                tables = {family: space.table(family)}
            yield build_subproblem(space, tables[family], stages), plans


def all_columns(sub: Subproblem) -> list[Column]:
    """Return every column that fits."""
    found = (sub.positions.time < 2**60).nonzero()
    return [Column(int(s), int(c), int(n) + 1) for s, c, n in zip(*found, strict=True)]


def columns_of(plans: Plans, row: int) -> list[Column]:
    """Return the columns that one plan takes."""
    return [
        Column(position, int(option), int(layers))
        for position, (option, layers) in enumerate(zip(plans.options[row], plans.layers[row], strict=True))
    ]


def best_row(plans: Plans) -> tuple[int, float]:
    """Return which plan is best and its objective [ns]."""
    row = int(np.argmin(plans.objectives))
    return row, float(plans.objectives[row]) / NANOSECOND
