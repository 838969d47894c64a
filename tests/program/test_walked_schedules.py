"""Schedules that are given by their passes, in the program: against every plan, the replay, and one another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import check_optimum, largest_allowance
from exhaustive import FORMULAS, Exhaustive, Floats, Plans
from test_exhaustive import priced

from builders import Planning, constraints, drawn
from planner.candidates.schedules import find_schedules
from planner.checks import Context, run_checks
from planner.costs import plan_cost
from planner.program import Search, decode
from planner.schedules import SCHEDULES
from planner.simulate import predict
from planner.specs.catalog import framework as catalogued
from planner.units import NANOSECOND

MANY = 8
"""Samples with which every plan of several micro-batches is too many plans."""
NAMES = [listed.name for listed in SCHEDULES if listed.name not in FORMULAS]


def problem(seed: int, name: str) -> Planning:
    """Return a random problem for one schedule, with pipelines and micro-batches enough.

    Models are untied: where ends meet, the program does not know (docs/formulation.md).
    """
    asked = drawn(seed, most_devices=6, most_layers=6)
    asked = replace(asked, model=replace(asked.model, tied=False, head=replace(asked.model.head, tied=False)))
    batch = (4, 6, 8, 12, 1, 16, 2, 3)[seed % 8]
    most = "micro_batch <= 2" if batch < MANY else "micro_batch = 1"
    wanted = constraints(f"schedule = {name}", "pp >= 2", most)
    return replace(asked, job=replace(asked.job, constraints=wanted, global_batch=batch))


@pytest.mark.parametrize("seed", range(8000, 8016))
@pytest.mark.parametrize("name", [*NAMES, "any"])
def test_optimum_is_that_of_every_plan(name: str, seed: int) -> None:
    """The best plan is as good as the best of all, no bound lies above it, and every plan met passes the checks."""
    check_optimum(problem(seed, name))


def test_there_is_something_to_choose() -> None:
    """Each schedule has problems with several plans, on one group and on several."""
    for name in NAMES:
        sizes = [
            sum(len(plans.layers) for plans in Exhaustive(problem(seed, name)).all_plans())
            for seed in range(8000, 8016)
        ]
        assert sum(size > 1 for size in sizes) >= 1, (name, sizes)


@pytest.mark.parametrize("name", NAMES)
def test_plans_of_exhaustive_search_cost_what_it_says(name: str) -> None:
    """The judge is judged: its plans break no rule, and times and exchanges are those of the whole plan."""
    for seed in range(8000, 8008):
        exhaustive = Exhaustive(problem(seed, name))
        asked = exhaustive.asked
        for plans in exhaustive.all_plans():
            for row in {0, len(plans.layers) - 1}:
                plan, costs = exhaustive.plan(plans, row), priced(exhaustive, plans, row)
                context = Context(
                    plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.stages
                )
                assert not run_checks(context), plan
                parts = plan.virtual_stages
                assert [stage.forward / parts for stage in costs.stages] == pytest.approx(plans.forward[row].tolist())
                each = plans.setting.listed.updates_each  # the exchange is then part of what a micro-batch takes
                backward = [stage.backward / parts + each * stage.sync for stage in costs.stages]
                assert backward == pytest.approx(plans.backward[row].tolist())
                weights = [sum(run.weight for run in stage.hosted) / plans.setting.parts for stage in costs.stages]
                assert weights == pytest.approx(plans.weight[row].tolist())
                syncs = [(not each) * stage.sync for stage in costs.stages]
                assert syncs == pytest.approx(_syncs(plans)[row].tolist())


def _syncs(plans: Plans) -> Floats:
    return plans.syncs if plans.setting.listed.eager_sync else plans.sync


@pytest.mark.parametrize("target", ["", "torchtitan", "megatron"])
def test_what_is_tried_unasked(target: str) -> None:
    """The first three and those the framework names; with any what trains alike; with a name only that one."""
    asked = replace(drawn(8000), target=catalogued(target) if target else None)
    profile = asked.target or asked.framework
    runs = profile.can.schedules
    alike = [listed.name for listed in SCHEDULES if not listed.changes_semantics]
    known = [listed.name for listed in SCHEDULES if listed.name in FORMULAS or profile.name in dict(listed.runs_as)]
    unasked = [name for name in alike if name in known and (not target or name in runs)]
    for text, names in (
        ("vpp <= 2", unasked),
        ("schedule = any", [name for name in alike if not target or name in runs]),
        ("schedule = zb-h1", [] if target == "megatron" else ["zb-h1"]),
        ("schedule = xpipe", [] if target else ["xpipe"]),
        ("schedule != 1f1b", [name for name in unasked if name != "1f1b"]),
    ):
        tried = find_schedules(replace(asked.job, constraints=constraints(text)), asked.framework, asked.target, 8)
        assert list(dict.fromkeys(listed.name for listed in tried)) == names, text


@pytest.mark.parametrize("gap", [0.0, 0.01])
@pytest.mark.parametrize("name", ["pipedream", "spectrain", "xpipe", "pipedream-2bw"])
def test_no_replay_ends_below_its_bound(name: str, gap: float) -> None:
    """Also where bottlenecks are closed because the measure puts no plan with them below the cutoff."""
    asked = drawn(1015, most_devices=4, most_layers=8)
    job = replace(asked.job, constraints=constraints(f"schedule = {name}", "pp >= 2"), global_batch=12)
    asked = replace(asked, job=replace(job, framework="megatron-deepspeed"), framework=catalogued("megatron-deepspeed"))
    result = Search(asked.space, gap).run()
    assert result.found
    for one in result.found:
        plan = decode(asked.space, one)
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        step = predict(plan, costs, asked.cluster, asked.model, asked.job).step_time - costs.step_overhead
        assert step / NANOSECOND >= result.replay_bound - largest_allowance(asked)


def test_a_limit_on_chunks_lets_all_be_tried_that_it_admits() -> None:
    """Of 12 layers 2 alone is worth it unasked; a limit of any kind asks, but one to a single chunk."""
    asked = drawn(8000)
    for text, counts in (("vpp != 2", [3, 4, 6]), ("vpp <= 3", [2, 3]), ("vpp >= 4", [4, 6]), ("vpp >= 1", [2])):
        job = replace(asked.job, constraints=constraints("schedule = interleaved", text))
        tried = find_schedules(job, asked.framework, None, 12)
        assert [listed.virtual_stages for listed in tried] == counts, text
