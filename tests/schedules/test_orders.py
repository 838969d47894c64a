"""Every schedule by its passes, tested the moment it is listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from pipelines import alike
from planner.domain.plan import Plan, Stage, Strategy
from planner.schedules import SCHEDULES, Pass, Schedule, most_held, schedule, schedule_of
from planner.schedules.base import loop, vee

SHAPES = (*product(range(1, 9), range(1, 13)), *product((9, 12, 13, 16), (1, 16, 24, 32, 36, 39, 48, 64)))
"""(stages, micro-batches)"""
EVERY = (
    *SCHEDULES,
    *(schedule(name, chunks) for name in ("interleaved", "breadth-first", "interleaved-zb") for chunks in (3, 8)),
    *(schedule("interleaved", 2, group) for group in (5, 12)),
)

each_schedule = pytest.mark.parametrize("listed", EVERY, ids=lambda one: f"{one.name}-{one.virtual_stages}")


def shapes(listed: Schedule) -> list[tuple[int, int]]:
    """Return the shapes that a schedule can run."""
    return [shape for shape in SHAPES if not listed.blocker(*shape)]


@each_schedule
def test_every_pass_runs_once_and_on_its_rank(listed: Schedule) -> None:
    """Each virtual stage takes each micro-batch of its direction forward once, and back whole or in two parts."""
    assert len(shapes(listed)) >= 8
    for stages, microbatches in shapes(listed):
        done: dict[tuple[int, int, int], str] = {}
        for rank, passes in enumerate(listed.passes(stages, microbatches)):
            for kind, microbatch, stage, direction, _ in passes:
                assert listed.rank(stage, direction, stages) == rank
                key = (direction, stage, microbatch)
                done[key] = done.get(key, "") + kind
        assert set(done.values()) <= {"FB", "FIW"}
        each = microbatches // listed.directions
        expected = {
            (direction, stage, direction * each + one)
            for direction in range(listed.directions)
            for stage in range(stages * listed.virtual_stages)
            for one in range(each)
        }
        assert set(done) == expected


@each_schedule
def test_no_shape_is_stuck_and_memory_is_what_is_counted(listed: Schedule) -> None:
    """The replay ends, and holds at most what `in_flight` says; counted here from passes, one by one."""
    for shape in shapes(listed):
        observed = alike(listed, shape, hop=0.25)
        held = []
        for passes in listed.passes(*shape):
            alive: Counter[tuple[int, int, int]] = Counter()
            most = 0
            for kind, microbatch, stage, direction, _ in passes:
                alive[direction, stage, microbatch] += {"F": 1, "B": -1, "I": 0, "W": -1}[kind]
                most = max(most, alive.total())
            held.append(most)
        expected = [listed.in_flight(rank, *shape) for rank in range(shape[0])]
        assert [*observed.peak_in_flight] == expected == held


@each_schedule
def test_letters_are_those_of_the_passes(listed: Schedule) -> None:
    """`order` and `passes` say the same."""
    for shape in shapes(listed)[::5]:
        spelled = [listed.order(rank, *shape) for rank in range(shape[0])]
        assert ["".join(run.kind for run in passes) for passes in listed.passes(*shape)] == spelled


@each_schedule
def test_a_schedule_is_told(listed: Schedule) -> None:
    """Names lead to rows."""
    assert schedule(listed.name).name == listed.name
    assert listed.summary
    assert len(listed.hosted(8)) == 8
    assert all(len(hosted) == listed.virtual_stages * listed.directions for hosted in listed.hosted(8))


def test_placements() -> None:
    """Loops go round, Vs to and fro; the second direction is the first one seen from the other end."""
    assert [loop(stage, 3) for stage in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert [vee(stage, 3) for stage in range(7)] == [0, 1, 2, 2, 1, 0, 0]
    bitpipe = schedule("bitpipe")
    assert bitpipe.hosted(2) == (((0, 0), (0, 3), (1, 1), (1, 2)), ((0, 1), (0, 2), (1, 0), (1, 3)))


def test_unequal_chunks_are_weighed() -> None:
    """One chunk of 3 layers and one of 1: two of the first and one of the second are 7 layers, at the most."""
    passes = [Pass("F", 0, 0), Pass("F", 1, 0), Pass("F", 0, 1), Pass("I", 0, 1), Pass("W", 0, 1), Pass("B", 0, 0)]
    assert most_held(passes, {(0, 0): 3.0, (0, 1): 1.0}) == 7.0


@pytest.mark.parametrize(
    ("name", "shape", "reason"),
    [
        ("dualpipe", (3, 12), "needs an even number of stages; 3 have a middle one"),
        ("dualpipe", (4, 7), "needs an even number of micro-batches, 8 or more; 7 do not do"),
        ("dualpipe", (4, 6), "needs an even number of micro-batches, 8 or more; 6 do not do"),
        ("dualpipev", (4, 7), "needs 8 micro-batches or more; there are 7"),
        ("chimera", (3, 4), "needs an even number of stages; 3 have a middle one"),
        ("bitpipe", (4, 5), "needs an even number of micro-batches, half of them from each end; there are 5"),
        ("interleaved-zb", (1, 4), "needs at least 2 stages"),
        ("interleaved-zb", (4, 6), "needs micro-batches in groups of 4, one a stage; 6 are no whole groups"),
    ],
)
def test_shapes_that_cannot_run(name: str, shape: tuple[int, int], reason: str) -> None:
    """Each says what it needs and what there is."""
    assert schedule(name).blocker(*shape) == reason


@pytest.mark.parametrize(
    ("group", "shape", "reason"),
    [
        (4, (4, 8), ""),
        (6, (4, 16), ""),
        (2, (4, 8), "needs groups of 4 to 8 micro-batches, the stages and all of them; not of 2"),
        (12, (4, 8), "needs groups of 4 to 8 micro-batches, the stages and all of them; not of 12"),
        (6, (4, 8), "needs a last group of 4 micro-batches or more, one a stage; groups of 6 leave 2"),
        (6, (1, 8), "needs at least 2 stages"),
    ],
)
def test_groups_of_micro_batches(group: int, shape: tuple[int, int], reason: str) -> None:
    """Megatron-LM 0.12, forward_backward_pipelining_with_interleaving: P to M, and P at least in the last group."""
    assert schedule("interleaved", 2, group).blocker(*shape) == reason


def test_groups_of_as_many_as_there_are_stages_are_the_usual_ones() -> None:
    """The same passes, whether the group is named or not; another number of chunks keeps the group."""
    named = schedule("interleaved", 3, 4)
    assert named.passes(4, 12) == schedule("interleaved", 3).passes(4, 12)
    assert named.with_chunks is not None
    assert named.with_chunks(2).passes(4, 12) == schedule("interleaved", 2, 4).passes(4, 12)
    assert named.with_group is not None
    assert named.with_group(6).passes(4, 12) == schedule("interleaved", 3, 6).passes(4, 12)


def test_the_schedule_of_a_plan() -> None:
    """Chunks and groups come from the plan."""
    plan = Plan(
        stages=(Stage(group="a", first_layer=0, last_layer=1, strategy=Strategy(), later_chunks=((2, 3), (4, 5))),),
        schedule="interleaved",
        num_replicas=1,
        micro_batch=1,
        num_microbatches=8,
        zero_stage=0,
        virtual_stages=3,
    )
    assert schedule_of(plan) == schedule("interleaved", 3)
    assert schedule_of(replace(plan, microbatch_group=4)) == schedule("interleaved", 3, 4)
