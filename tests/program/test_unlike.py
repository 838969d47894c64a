"""Plans with several kinds of pipelines: the search against every one there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import largest_allowance
from unlike_cases import Unlike

from builders import Planning, constraints, drawn, job, planning
from planner.checks import Context, run_checks
from planner.costs import plan_cost
from planner.errors import NoFeasiblePlan
from planner.program import Search, UnlikeResult, UnlikeSearch, decode_unlike
from planner.simulate import predict
from planner.specs.cluster import read_cluster
from planner.specs.model import read_model
from planner.units import NANOSECOND

SEEDS = range(8000, 8240)


def mixed(seed: int) -> Planning:
    """Return a random problem that has several groups, every other one with memory and links for several replicas.

    The judge does not know of limits on devices; the checks do.
    """
    asked = drawn(seed, most_devices=7, most_layers=5)
    while len(asked.cluster.groups) < 2:
        seed += 10_000
        asked = drawn(seed, most_devices=7, most_layers=5)
    kept = tuple(one for one in asked.job.constraints if one.subject != "devices")
    asked = replace(asked, job=replace(asked.job, constraints=kept))
    if seed % 2:
        return asked
    groups = [
        replace(
            one,
            device=replace(one.device, memory=8 * one.device.memory),
            inter_node=replace(one.inter_node, bandwidth=1e12),
        )
        for one in asked.cluster.groups
    ]
    return replace(asked, cluster=replace(asked.cluster, groups=tuple(groups)))


def searched(asked: Planning, gap: float = 0.0, best: float = np.inf) -> UnlikeResult:
    try:
        return UnlikeSearch(asked.space, gap, best).run()
    except NoFeasiblePlan:
        return UnlikeResult()


@pytest.mark.parametrize("seed", SEEDS)
def test_optimum_is_that_of_every_plan(seed: int) -> None:
    """Searched to the end, the best plan is as good as the best of all, no bound lies above it, and checks pass."""
    asked = mixed(seed)
    best, result = Unlike(asked).best / NANOSECOND, searched(asked)
    slack = largest_allowance(asked)
    assert min((found.objective for found in result.found), default=np.inf) == pytest.approx(best, rel=1e-9, abs=slack)
    assert result.lower_bound <= best + slack
    for found in result.found[:3]:
        plan = decode_unlike(asked.space, found)
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        context = Context(plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.all_stages)
        assert not run_checks(context), plan
        step = predict(plan, costs, asked.cluster, asked.model, asked.job).step_time
        assert result.replay_bound * NANOSECOND <= step + NANOSECOND


@pytest.mark.parametrize("seed", SEEDS[:60])
def test_beside_equal_replicas(seed: int) -> None:
    """With the best plan of equal replicas known, only faster ones are met, and the bound holds for both."""
    asked = mixed(seed)
    try:
        equal = Search(asked.space, 0.0).run()
    except NoFeasiblePlan:
        return
    known = min((found.objective for found in equal.found), default=np.inf)
    best, result = Unlike(asked).best / NANOSECOND, searched(asked, 0.0, known)
    slack = largest_allowance(asked)
    assert result.lower_bound <= min(best, known) + slack
    assert min([known, *(found.objective for found in result.found)]) <= best + slack


@pytest.mark.parametrize("seed", SEEDS[:60])
def test_within_the_gap_that_was_asked_for(seed: int) -> None:
    asked = mixed(seed)
    best, result = Unlike(asked).best / NANOSECOND, searched(asked, 0.05)
    objective = min((found.objective for found in result.found), default=np.inf)
    slack = largest_allowance(asked)
    assert bool(result.found) == bool(np.isfinite(best))
    assert result.lower_bound <= best + slack
    if result.found:
        assert objective * 0.95 <= min(best, result.lower_bound) + slack


def test_some_problems_have_such_plans() -> None:
    """Among the problems are ones in which unlike replicas are faster than equal ones, and ones that have none."""
    steps = []
    for seed in SEEDS[:60]:
        asked = mixed(seed)
        try:
            equal = min((found.objective for found in Search(asked.space, 0.0).run().found), default=np.inf)
        except NoFeasiblePlan:
            continue
        steps.append((Unlike(asked).best / NANOSECOND, equal))
    assert any(unlike < 0.97 * equal for unlike, equal in steps)
    assert any(not np.isfinite(unlike) for unlike, _ in steps)


@pytest.mark.parametrize(
    ("text", "model", "batch", "limits", "within"),
    [
        ("1x2:h100-sxm-80gb+1x8:t4-16gb", "gpt2", 1000, ("dp = 8", "tp = 1", "pp = 1"), 1.65e9),
        ("1x2:h100-sxm-80gb+1x8:t4-16gb", "gpt2", 1000, ("dp = 9", "tp = 1", "pp = 1"), 1.60e9),
        ("1x3:a100-sxm-80gb+3x8:v100-sxm-32gb", "gpt2", 96, ("tp = 1", "micro_batch = 1"), 0.28e9),
    ],
)
def test_numbers_in_between(text: str, model: str, batch: int, limits: tuple[str, ...], within: float) -> None:
    """The best may use neither one replica of a kind nor all that a group holds; the gap is reached all the same."""
    root = Path(__file__).resolve().parents[2]
    wanted = job(batch, "replicas = unequal", *limits, sequence=1024, precision="fp16", gap=0.01)
    asked = planning(read_cluster(text), read_model(str(root / "model_specs" / f"{model}.json")), wanted)
    result = searched(asked, 0.01)
    best = min(found.objective for found in result.found)
    assert best <= within
    assert result.lower_bound >= best * 0.99 - 1


@pytest.mark.parametrize("text", ["devices <= 4", "devices >= 5", "group g0 <= 2", "group g1 >= 2", "dp = 4"])
@pytest.mark.parametrize("seed", [8010, 8042, 8054, 8058])
def test_limits_are_kept(seed: int, text: str) -> None:
    """A limit leaves the plans that keep it: none is faster than without, and each passes the checks."""
    asked = mixed(seed)
    limited = replace(asked, job=replace(asked.job, constraints=(*asked.job.constraints, *constraints(text))))
    result, free = searched(limited), searched(asked)
    assert result.lower_bound >= free.lower_bound - largest_allowance(asked)
    for found in result.found:
        plan = decode_unlike(limited.space, found)
        costs = plan_cost(plan, limited.cluster, limited.model, limited.job, limited.framework)
        context = Context(
            plan=plan, cluster=limited.cluster, model=limited.model, job=limited.job, stages=costs.all_stages
        )
        assert not run_checks(context), plan


def test_asked_for_equal_replicas() -> None:
    """A job that wants equal replicas has no others."""
    asked = mixed(8001)
    written = (*asked.job.constraints, *constraints("replicas = equal"))
    wanted = replace(asked, job=replace(asked.job, constraints=written))
    assert not searched(wanted).found
    assert searched(wanted).lower_bound == np.inf
