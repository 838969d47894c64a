"""The search against every plan there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import allowance, check_optimum, judge, largest_allowance, optimum, searched
from exhaustive import Exhaustive, Plans, packs

from builders import Planning, cluster, drawn, group, job, model, planning
from planner.checks import Context, run_checks
from planner.checks.frameworks import refusals
from planner.costs import PlanCost, plan_cost
from planner.program import decode
from planner.schedules import schedule
from planner.simulate import replay
from planner.specs.catalog import framework as catalogued
from planner.units import NANOSECOND

SEEDS = range(220)
TARGETED = range(1000, 1130)


@pytest.mark.parametrize("seed", SEEDS)
def test_optimum_is_that_of_every_plan(seed: int) -> None:
    """Searched to the end, the best plan is as good as the best of all plans, and the bound does not lie above it."""
    asked, best = judge(seed).asked, optimum(seed)
    result = searched(asked)
    assert min((found.objective for found in result.found), default=np.inf) == pytest.approx(
        best, rel=1e-9, abs=largest_allowance(asked)
    )
    assert result.lower_bound <= best + largest_allowance(asked)


@pytest.mark.parametrize("seed", TARGETED)
def test_optimum_of_what_a_framework_can_run(seed: int) -> None:
    """For a target, the best plan is as good as the best of the plans that the target can run."""
    asked, best = judge(seed, target=True).asked, optimum(seed, target=True)
    result = searched(asked)
    assert min((found.objective for found in result.found), default=np.inf) == pytest.approx(
        best, rel=1e-9, abs=largest_allowance(asked)
    )


@pytest.mark.parametrize("seed", TARGETED)
def test_the_target_can_run_every_plan_met(seed: int) -> None:
    """No plan is met on the way that the target refuses."""
    asked = drawn(seed, target=True)
    assert asked.target is not None
    for found in searched(asked, gap=0.05).found:
        assert not refusals(decode(asked.space, found), asked.target, asked.cluster)


@pytest.mark.parametrize("seed", SEEDS[:120])
def test_within_the_gap_that_was_asked_for(seed: int) -> None:
    """Searched to 5%, the best plan is within 5% of the optimum and of the bound, which lies below the optimum."""
    asked, best = judge(seed).asked, optimum(seed)
    result = searched(asked, gap=0.05)
    slack = largest_allowance(asked)
    objective = min((found.objective for found in result.found), default=np.inf)
    assert bool(result.found) == bool(np.isfinite(best))
    assert result.lower_bound <= best + slack
    if result.found:
        assert objective * 0.95 <= best + slack
        assert objective * 0.95 <= result.lower_bound + slack


@pytest.mark.parametrize("seed", SEEDS[:120])
def test_every_plan_met_passes_the_checks(seed: int) -> None:
    """Plans that are met before the solver is asked fit devices, nodes and memory too."""
    asked = drawn(seed)
    for found in searched(asked, gap=0.05).found:
        plan = decode(asked.space, found)
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        context = Context(plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.stages)
        assert not run_checks(context), plan


@pytest.mark.parametrize("seed", range(2000, 2040))
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_no_replay_is_below_the_replay_bound(seed: int, gap: float) -> None:
    """The best plans of every setting are replayed: none is faster than the bound on replays."""
    exhaustive = judge(seed, most_devices=6, most_layers=6)
    bound = searched(exhaustive.asked, gap).replay_bound * NANOSECOND
    for plans in exhaustive.all_plans():
        listed = schedule(plans.setting.schedule, plans.setting.chunks)
        for row in np.argsort(plans.objectives)[:10].tolist():
            costs = priced(exhaustive, plans, row)
            passes, joints = zip(*costs.passes, strict=True), costs.joints
            hops = ([hop.forward for hop in joints], [hop.backward for hop in joints])
            observed = replay(listed, *passes, *hops, plans.sync[row].tolist(), plans.setting.microbatches)
            assert bound <= observed.step_time + NANOSECOND


@pytest.mark.parametrize("seed", range(3000, 3040))
def test_what_exhaustive_search_leaves_out_is_no_better(seed: int) -> None:
    """Every recompute of every stage, every ZeRO stage and schedule tried apart: the optimum stays what it was."""
    quick = judge(seed, most_devices=4, most_layers=4)
    assert Exhaustive(quick.asked, thorough=True).optimum == pytest.approx(quick.optimum, rel=1e-12)


@pytest.mark.parametrize("seed", range(4000, 4020))
def test_plans_of_exhaustive_search_pass_the_checks(seed: int) -> None:
    """The judge is judged: its plans break no rule, and cost what it says."""
    exhaustive = judge(seed, most_devices=5, most_layers=5)
    asked = exhaustive.asked
    for plans in exhaustive.all_plans():
        for row in {0, len(plans.layers) // 2, len(plans.layers) - 1}:
            plan, costs = exhaustive.plan(plans, row), priced(exhaustive, plans, row)
            context = Context(plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.stages)
            assert not run_checks(context), plan
            mean = [stage.backward / plan.virtual_stages for stage in costs.stages]
            assert mean == pytest.approx(plans.backward[row].tolist())
            assert [hop.backward for hop in costs.hops] == pytest.approx(plans.back[row].tolist())
            if costs.wrap is not None:
                assert [costs.wrap.forward, costs.wrap.backward] == pytest.approx(plans.around[row].tolist())
                longest = costs.passes[-1][0] + costs.passes[-1][1]
                assert longest == pytest.approx(plans.forward[row][-1] + plans.backward[row][-1] + plans.uneven[row][1])


def priced(exhaustive: Exhaustive, plans: Plans, row: int) -> PlanCost:
    """Return what the planner says that a plan costs."""
    asked = exhaustive.asked
    return plan_cost(exhaustive.plan(plans, row), asked.cluster, asked.model, asked.job, asked.framework)


@pytest.mark.parametrize("seed", [5032, 5147, 5204])
def test_even_layers_are_counted_as_they_are(seed: int) -> None:
    """Where stages must be even, a stage that holds two layers may be unable to hold one: it still holds two."""
    asked = replace(drawn(seed, most_devices=6, most_layers=5), target=catalogued("deepspeed"))
    best, result = Exhaustive(asked).optimum / NANOSECOND, searched(asked)
    assert min(found.objective for found in result.found) == pytest.approx(best, abs=largest_allowance(asked))
    assert result.lower_bound <= best + largest_allowance(asked)


@pytest.mark.parametrize("target", [False, True])
@pytest.mark.parametrize("seed", range(5000, 5060))
def test_optimum_with_context_degrees(seed: int, target: bool) -> None:
    """Both forms of context parallelism beside tensor degrees: the best plan is as good as the best of all plans.

    Every plan that is met passes the checks, and the target, where there is one, can run it.
    """
    asked = drawn(seed, most_devices=6, most_layers=5, target=target, context=True)
    for one in check_optimum(asked).found:
        assert asked.target is None or not refusals(decode(asked.space, one), asked.target, asked.cluster)


@pytest.mark.parametrize("seed", range(7000, 7040))
def test_optimum_on_unlike_rails_and_parts_of_nodes(seed: int) -> None:
    """Levels below the node, rails at half rate and messages too small for it: as good as the best of all plans."""
    check_optimum(drawn(seed, most_devices=6, most_layers=5, topology=True))


EAGER = range(6000, 6030)


def eager(seed: int, temporaries: int = 12) -> Planning:
    """Return a random problem whose optimizer makes temporaries [bytes a parameter]."""
    asked = drawn(seed, most_devices=6, most_layers=5)
    return replace(asked, framework=replace(asked.framework, update_temporary_bytes=temporaries))


@pytest.mark.parametrize("seed", EAGER)
def test_optimum_where_the_optimizer_may_be_the_peak(seed: int) -> None:
    """The best plan is as good as the best of all plans whose largest peak fits; every plan met passes the checks."""
    asked = eager(seed)
    check_optimum(asked)


def test_the_peak_of_the_optimizer_decides() -> None:
    """Among these problems are some whose optimum is slower for the temporaries, or gone."""

    def best(asked: Planning) -> float:
        return min((found.objective for found in searched(asked).found), default=np.inf)

    assert any(best(eager(seed)) > 1.01 * best(eager(seed, temporaries=0)) for seed in EAGER)


def test_both_forms_of_context_parallelism_win() -> None:
    """Among the optima with context degrees are rings, all-to-alls and plans that do without either."""
    kinds = set()
    for seed in range(5000, 5060):
        asked = drawn(seed, most_devices=6, most_layers=5, context=True)
        found = searched(asked).found
        if found:
            best = decode(asked.space, min(found, key=lambda one: one.objective))
            cut = [stage.strategy for stage in best.stages]
            kinds |= {strategy.cp_comm_type if strategy.degree("cp") > 1 else "none" for strategy in cut}
    assert kinds == {"none", "p2p", "a2a"}


def test_problems_are_of_every_sort() -> None:
    """Among the problems are impossible ones, recompute, unlike widths on nodes, several groups and slow transfers."""
    sorts = set()
    for seed in SEEDS:
        exhaustive = judge(seed)
        if not np.isfinite(optimum(seed)):
            sorts.add("impossible")
            continue
        plans = min(exhaustive.all_plans(), key=lambda some: float(some.objectives.min()))
        row = int(plans.objectives.argmin())
        plan = exhaustive.plan(plans, row)
        stages = plan.stages
        sorts |= {plan.schedule, f"zero {plan.zero_stage}"}
        sorts |= {"recompute"} if any(stage.num_recomputed for stage in stages) else set()
        sorts |= {"groups"} if len({stage.group for stage in stages}) > 1 else set()
        sorts |= {"widths"} if len({stage.strategy.num_devices for stage in stages}) > 1 else set()
        alone = (plans.forward + plans.backward).max(axis=1)
        slower = plans.bottlenecks[row] > alone[row] * 1.0001
        sorts |= {"transfers"} if slower and plan.schedule == "1f1b" else set()
    wanted = {
        "impossible",
        "1f1b",
        "gpipe",
        "interleaved",
        "zero 0",
        "zero 1",
        "recompute",
        "groups",
        "widths",
        "transfers",
    }
    assert wanted <= sorts


def test_packing_by_hand() -> None:
    """Two blocks of 2 leave no room for a third on two nodes of 3, but for two of 1."""
    assert packs((2, 2, 1, 1), (3, 3))
    assert not packs((2, 2, 2), (3, 3))


def test_tensor_groups_that_do_not_fill_nodes() -> None:
    """Two nodes of 3 hold two tensor groups of 2, not three: no plan that is met takes three stages of 2."""
    asked = planning(cluster(group(nodes=2, per_node=3)), model(6, heads=4), job(1, "tp >= 2"))
    result = searched(asked)
    assert result.found
    assert max(found.sub.num_stages for found in result.found) == 2
    exhaustive = Exhaustive(asked)
    assert result.found[0].objective == pytest.approx(exhaustive.optimum / NANOSECOND, abs=allowance(1, 2))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("devices <= 2", lambda plan: plan.num_devices <= 2),
        ("devices >= 3", lambda plan: plan.num_devices >= 3),
        ("devices = 3", lambda plan: plan.num_devices == 3),
        ("group a <= 1", lambda plan: sum(s.group == "a" for s in plan.stages) * plan.num_replicas <= 1),
        ("group a >= 1", lambda plan: any(stage.group == "a" for stage in plan.stages)),
        ("group a unused", lambda plan: all(stage.group != "a" for stage in plan.stages)),
        ("group a = 2", lambda plan: sum(s.group == "a" for s in plan.stages) * plan.num_replicas == 2),
    ],
)
def test_limits_on_devices_are_kept(text: str, holds: object) -> None:
    """Every way of limiting devices is honoured by every plan that is met, and plans exist for each."""
    asked = planning(cluster(group("a", per_node=2), group("b", per_node=2, speed=0.2)), job_=job(4, "tp = 1", text))
    found = searched(asked).found
    assert found
    for one in found:
        assert holds(decode(asked.space, one)), text  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(7000, 7060))
def test_optimum_of_unlike_stages_for_a_framework(seed: int) -> None:
    """For one that runs unlike tensor and data degrees and any number of recomputed layers: as good, and all run."""
    asked = replace(drawn(seed, most_devices=6, most_layers=5), target=catalogued("flagscale"))
    assert asked.target is not None
    best, result = Exhaustive(asked).optimum / NANOSECOND, searched(asked)
    assert min((found.objective for found in result.found), default=np.inf) == pytest.approx(
        best, rel=1e-9, abs=largest_allowance(asked)
    )
    for found in result.found:
        assert not refusals(decode(asked.space, found), asked.target, asked.cluster)
