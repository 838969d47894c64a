"""Each constraint of the program alone, and the program without each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest
from cases import all_columns, allowance, best_row, subproblems
from exhaustive import Plans
from ortools.sat.python import cp_model

from builders import Planning, cluster, framework, group, job, model, planning
from planner.domain.cluster import GroupLink
from planner.program.constraints import (
    CONSTRAINTS,
    all_layers,
    capacity,
    cycle_pace,
    joint_choices,
    link_pace,
    node_slots,
    one_column,
    stage_pace,
    sync_end,
    turn_pace,
    turn_stall,
    uneven_pace,
)
from planner.program.solve import build
from planner.program.subproblem import Subproblem, build_subproblem
from planner.program.variables import Column, Variables, make_variables
from planner.schedules import Schedule, schedule

HORIZON = 10**12
ONE_F_ONE_B = schedule("1f1b")
Fix = Callable[[Variables], None]


def subproblem(
    asked: Planning, stages: int, zero: int = 0, replicas: int = 1, listed: Schedule = ONE_F_ONE_B
) -> Subproblem:
    """Return the subproblem of a problem with micro-batches of one sample, of 1f1b or another schedule."""
    space = asked.space
    family = next(
        family
        for family in space.families
        if family.schedule == listed
        and (family.zero_stage, family.num_replicas, family.micro_batch) == (zero, replicas, 1)
        and family.pipelined == (stages > 1)
    )
    return build_subproblem(space, space.table(family), stages)


def possible(sub: Subproblem, constraint: Callable[[Variables], None], *fixes: Fix) -> bool:
    """Tell whether something satisfies one constraint and what is fixed, with nothing else in the model."""
    variables = make_variables(sub, all_columns(sub), HORIZON)
    constraint(variables)
    for fix in fixes:
        fix(variables)
    status = cp_model.CpSolver().solve(variables.model)
    assert status in {cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE}
    return status != cp_model.INFEASIBLE


def taking(*columns: tuple[int, int, int]) -> Fix:
    """Fix columns (position, choice, layers) as taken."""

    def fix(variables: Variables) -> None:
        for column in columns:
            variables.model.add(variables.taken[Column(*column)] == 1)

    return fix


def only(*columns: tuple[int, int, int]) -> Fix:
    """Fix columns as taken and all others as not."""

    def fix(variables: Variables) -> None:
        for column, taken in variables.taken.items():
            variables.model.add(taken == (column in {Column(*wanted) for wanted in columns}))

    return fix


def joined(position: int, here: int, there: int) -> Fix:
    """Fix the choices that a joint joins."""

    def fix(variables: Variables) -> None:
        for key, joint in variables.joints.items():
            if key[0] == position:
                variables.model.add(joint == (key == (position, here, there)))

    return fix


def paced(most: int) -> Fix:
    """Limit tau [ns]."""
    return lambda variables: variables.model.add(variables.tau <= most)


def ending(most: int) -> Fix:
    """Limit S [ns]."""
    return lambda variables: variables.model.add(variables.sync <= most)


@cache
def pair() -> Subproblem:
    """Two stages of one device each, from a node of two, tp 1 or 2, four layers, three micro-batches."""
    return subproblem(planning(cluster(group(per_node=2, nodes=2)), model(4, heads=4), job(3)), 2)


@cache
def slow_pair() -> Subproblem:
    """Two stages on two groups with a slow link between them; a stage on one group has no such hop.

    Transfers do not block: cycles and links pace the pipeline.
    """
    groups = (group("a", per_node=2), group("b", per_node=2))
    link = GroupLink(first="a", second="b", transport="tcp", bandwidth=1e8, efficiency=1.0, latency=0.0)
    beside = framework(blocking_transfers=False)
    return subproblem(planning(cluster(*groups, links=(link,)), model(4, heads=1), job(3), beside), 2)


@cache
def ring() -> Subproblem:
    """Two stages of two chunks on two groups with a slow link between them, four micro-batches, eight layers."""
    groups = (group("a", per_node=2), group("b", per_node=2))
    link = GroupLink(first="a", second="b", transport="tcp", bandwidth=3e8, efficiency=1.0, latency=0.0)
    asked = planning(cluster(*groups, links=(link,)), model(8, heads=1, vocabulary=24000), job(4, "vpp = 2"))
    return subproblem(asked, 2, listed=schedule("interleaved", 2))


def stalled(most: int) -> Fix:
    """Limit Z [ns]."""
    return lambda variables: variables.model.add(variables.stall <= most)


def stage_time(sub: Subproblem, position: int, choice: int, layers: int) -> int:
    return int(sub.positions.time[position, choice, layers - 1])


def test_one_column() -> None:
    """A position takes one column, not two."""
    assert possible(pair(), one_column, taking((0, 0, 1), (1, 0, 3)))
    assert not possible(pair(), one_column, taking((0, 0, 1), (0, 0, 2)))
    assert possible(pair(), one_column, taking((0, 0, 1), (1, 1, 3)))


def test_all_layers() -> None:
    """Four layers are 1 + 3 or 2 + 2, not 2 + 3."""
    assert possible(pair(), all_layers, only((0, 0, 1), (1, 0, 3)))
    assert not possible(pair(), all_layers, only((0, 0, 2), (1, 0, 3)))
    assert possible(pair(), all_layers, only((0, 0, 2), (1, 0, 2)))


def test_capacity() -> None:
    """Three devices hold stages of 1 and 2 devices, not two of 2."""
    sub = subproblem(planning(cluster(group(per_node=2, nodes=2)), model(4, heads=4), job(3, "devices <= 3")), 2)
    assert possible(sub, capacity, taking((0, 0, 1), (1, 1, 1)))
    assert not possible(sub, capacity, taking((0, 1, 1), (1, 1, 1)))
    assert possible(sub, capacity, taking((0, 1, 1), (1, 0, 1)))


def test_node_slots() -> None:
    """Two nodes of 3 devices hold tensor groups of 2, 2 and 1, not of 2, 2 and 2."""
    sub = subproblem(planning(cluster(group(nodes=2, per_node=3)), model(4, heads=4), job(3)), 3)
    assert possible(sub, node_slots, only((0, 1, 1), (1, 0, 1), (2, 1, 1)))
    assert not possible(sub, node_slots, only((0, 1, 1), (1, 1, 1), (2, 1, 1)))
    assert possible(sub, node_slots, only((0, 1, 1), (1, 1, 1), (2, 0, 1)))


def test_node_slots_count_replicas() -> None:
    """Two replicas of one stage of 2 devices fit on two nodes of 3; two stages of 2 do not."""
    sub = subproblem(planning(cluster(group(nodes=2, per_node=3)), model(4, heads=4), job(4)), 2, replicas=2)
    assert possible(sub, node_slots, only((0, 1, 1), (1, 0, 1)))
    assert not possible(sub, node_slots, only((0, 1, 1), (1, 1, 1)))
    assert possible(sub, node_slots, only((0, 0, 1), (1, 0, 1)))


def test_joint_choices() -> None:
    """A joint joins the choices of its positions, not others."""
    assert possible(slow_pair(), joint_choices, only((0, 0, 1), (1, 1, 3)), joined(0, 0, 1))
    assert not possible(slow_pair(), joint_choices, only((0, 0, 1), (1, 0, 3)), joined(0, 0, 1))
    assert possible(slow_pair(), joint_choices, only((0, 0, 1), (1, 0, 3)), joined(0, 0, 0))


def test_stage_pace() -> None:
    """A stage of three layers is not paced by the time of a stage of two."""
    two = stage_time(pair(), 1, 0, 2)
    assert possible(pair(), stage_pace, only((0, 0, 1), (1, 0, 2)), paced(two))
    assert not possible(pair(), stage_pace, only((0, 0, 1), (1, 0, 3)), paced(two))
    assert possible(pair(), stage_pace, only((0, 0, 1), (1, 0, 3)), paced(stage_time(pair(), 1, 0, 3)))


def test_link_pace() -> None:
    """A link of x ns a transfer passes one every x ns, not faster; a faster link does."""
    hop = int(slow_pair().hops[0, 0, 1])
    assert possible(slow_pair(), link_pace, joined(0, 0, 1), paced(hop))
    assert not possible(slow_pair(), link_pace, joined(0, 0, 1), paced(hop - 1))
    assert possible(slow_pair(), link_pace, joined(0, 0, 0), paced(hop - 1))


def test_stage_pace_where_transfers_block() -> None:
    """A stage that waits for what it sends: t_0 + x <= tau and t_1 + y <= tau."""
    sub = replace(slow_pair(), blocking=True)
    ends = stage_time(sub, 0, 0, 1) + int(sub.hops[0, 0, 1]), stage_time(sub, 1, 1, 3) + int(sub.hops[1, 0, 1])
    fixed = (only((0, 0, 1), (1, 1, 3)), joined(0, 0, 1))
    assert possible(sub, stage_pace, *fixed, paced(max(ends)))
    assert not possible(sub, stage_pace, *fixed, paced(max(ends) - 1))
    assert possible(replace(sub, blocking=False), stage_pace, *fixed, paced(max(ends) - 1))


def test_cycle_pace() -> None:
    """Two stages hold 2 and 1 micro-batches: what goes around both takes two periods, t_0 + t_1 + x + y <= 2 tau."""
    sub = slow_pair()
    around = stage_time(sub, 0, 0, 1) + stage_time(sub, 1, 1, 3) + int(sub.hops[:, 0, 1].sum())
    half = -(-around // 2)
    far = (only((0, 0, 1), (1, 1, 3)), joined(0, 0, 1))
    assert half > max(stage_time(sub, 0, 0, 1), stage_time(sub, 1, 1, 3))
    assert possible(sub, cycle_pace, *far, paced(half))
    assert not possible(sub, cycle_pace, *far, paced(half - 1))
    assert possible(sub, cycle_pace, only((0, 0, 1), (1, 0, 3)), joined(0, 0, 0), paced(half - 1))


def test_sync_end() -> None:
    """S is at least the update of stage 0 and of stage 1 less the backward pass and transfer behind it."""
    sub = slow_pair()
    first = int(sub.positions.sync[0, 0, 0])
    behind = int(sub.positions.backward[0, 0, 0] + sub.hops[1, 0, 1])
    least = max(first, int(sub.positions.sync[1, 1, 2]) - behind)
    fixed = (only((0, 0, 1), (1, 1, 3)), joined(0, 0, 1))
    assert possible(sub, sync_end, *fixed, ending(least))
    assert not possible(sub, sync_end, *fixed, ending(least - 1))
    assert possible(sub, sync_end, *fixed, ending(least + 1))


def test_uneven_pace() -> None:
    """The chunk with the head takes its time, and the other stage's every other chunk: 2 tau >= t_1 + d_1 + t_0."""
    sub = ring()
    ends = [stage_time(sub, 0, 0, 3), stage_time(sub, 1, 0, 1)]
    least = -(-(sum(ends) + int(sub.positions.uneven[1, 0])) // 2)
    assert least > max(ends)
    assert possible(sub, uneven_pace, only((0, 0, 3), (1, 0, 1)), paced(least))
    assert not possible(sub, uneven_pace, only((0, 0, 3), (1, 0, 1)), paced(least - 1))
    assert possible(sub, uneven_pace, only((0, 0, 2), (1, 0, 1)), paced(least - 1))


def test_turn_pace_and_stall() -> None:
    """A turn of both stages and both transfers each way takes 4 tau or more, and what outlasts 2 tau is waited for."""
    sub = ring()
    far = (only((0, 0, 1), (1, 1, 3)), joined(0, 0, 1), joined(1, 1, 0))
    turn = stage_time(sub, 0, 0, 1) + stage_time(sub, 1, 1, 3)
    turn += int(sub.hops[:, 0, 1].sum() + sub.hops[:, 1, 0].sum())
    quarter = -(-turn // 4)
    assert possible(sub, turn_pace, *far, paced(quarter))
    assert not possible(sub, turn_pace, *far, paced(quarter - 1))
    near = (only((0, 0, 1), (1, 0, 3)), joined(0, 0, 0), joined(1, 0, 0))
    assert possible(sub, turn_pace, *near, paced(quarter - 1))
    assert possible(sub, turn_stall, *far, paced(quarter), stalled(turn - 2 * quarter))
    assert not possible(sub, turn_stall, *far, paced(quarter), stalled(turn - 2 * quarter - 1))
    assert possible(sub, turn_stall, *near, paced(quarter), stalled(turn - 2 * quarter - 1))


def test_the_way_back_to_the_first_stage_is_a_joint_and_a_link() -> None:
    """With chunks, the last position's transfers to the first one join choices and are paced as all others are."""
    sub = ring()
    hop = int(sub.hops[0, 1, 0])
    assert possible(sub, joint_choices, only((0, 0, 1), (1, 1, 3)), joined(1, 1, 0))
    assert not possible(sub, joint_choices, only((0, 0, 1), (1, 0, 3)), joined(1, 1, 0))
    assert possible(sub, link_pace, joined(1, 1, 0), paced(hop))
    assert not possible(sub, link_pace, joined(1, 1, 0), paced(hop - 1))
    assert not any(position == 1 for position, _, _ in make_variables(pair(), all_columns(pair()), HORIZON).joints)


def optimum(sub: Subproblem, constraints: Iterable[Callable[[Variables], None]]) -> int | None:
    """Return [ns] the smallest objective under `constraints`, None if there is none."""
    variables = build(sub, all_columns(sub), HORIZON, tuple(constraints))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(variables.model)
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None


def mixed() -> list[Subproblem]:
    """Return small subproblems in which each constraint binds somewhere."""
    slow = GroupLink(first="a", second="b", transport="tcp", bandwidth=2e8, efficiency=1.0, latency=0.0)
    two = cluster(group("a", per_node=2), group("b", per_node=1, speed=0.4), links=(slow,))
    whole = planning(cluster(group(nodes=2, per_node=3, inter=1e11)), model(6, heads=4, head_dim=128), job(2))
    beside = framework(blocking_transfers=False)
    far = planning(cluster(group(nodes=3, per_node=1, inter=3e8)), model(3, heads=1), job(8), beside)
    linked = planning(cluster(group(nodes=2, per_node=1, inter=5e7)), model(2, heads=1), job(2), beside)
    late = planning(
        cluster(group("a", per_node=2), group("b", per_node=2)),
        model(4, heads=4, vocabulary=48000),
        job(2),
        framework(),
    )
    once = planning(cluster(group(per_node=2)), model(3, heads=1), job(1))
    turning = planning(cluster(group(nodes=2, per_node=1, inter=5e7)), model(4, heads=1), job(4))
    headed = planning(cluster(group(per_node=2)), model(8, heads=1, vocabulary=48000), job(4))
    chunks = schedule("interleaved", 2)
    slower = GroupLink(first="a", second="b", transport="tcp", bandwidth=5e7, efficiency=1.0, latency=0.0)
    apart = cluster(group("a", per_node=1), group("b", per_node=1), links=(slower,))
    away = planning(apart, model(4, heads=1), job(12, "schedule = zb-h1"))
    facing = planning(cluster(group(per_node=2)), model(5, heads=1), job(4, "schedule = chimera"))
    return [
        *(subproblem(asked, 2) for asked in (planning(two, model(4, heads=2), job(4)), linked, late, once)),
        subproblem(whole, 3),
        subproblem(far, 3),
        *(subproblem(asked, 2, listed=chunks) for asked in (turning, headed)),
        ring(),
        subproblem(away, 2, listed=schedule("zb-h1")),
        subproblem(facing, 2, listed=schedule("chimera")),
    ]


def settled(sub: Subproblem, plans: Plans) -> None:
    best = best_row(plans)[1]
    found = optimum(sub, CONSTRAINTS)
    assert found == pytest.approx(
        best, abs=allowance(plans.setting.passes, plans.setting.chunks * plans.setting.stages)
    )


@pytest.mark.parametrize("seed", range(6000, 6030))
def test_program_alone_finds_the_best_plan(seed: int) -> None:
    """Without bounds, filters and hints, the optimum of a subproblem's program is the best of all of its plans."""
    for sub, plans in list(subproblems(seed, most_devices=6, most_layers=5))[::4]:
        settled(sub, plans)


@pytest.mark.parametrize("removed", CONSTRAINTS, ids=lambda constraint: constraint.__name__)
def test_every_constraint_matters(removed: Callable[[Variables], None]) -> None:
    """Without any one constraint, at least one small subproblem has another optimum."""
    left = [constraint for constraint in CONSTRAINTS if constraint is not removed]
    assert any(optimum(sub, left) != optimum(sub, CONSTRAINTS) for sub in mixed())
