"""Every schedule of the table, tested the moment it is listed."""

from __future__ import annotations

from itertools import product

import pytest

from planner.schedules import SCHEDULES, Operation, Schedule, operations, peak_in_flight, schedule
from planner.simulate import replay

SHAPES = tuple(product(range(1, 9), range(1, 17)))
"""(stages, micro-batches)"""

each_schedule = pytest.mark.parametrize("listed", SCHEDULES, ids=lambda listed: listed.name)


@each_schedule
def test_lookup_finds_each_by_its_name(listed: Schedule) -> None:
    """A name in a plan file leads to the row of the table."""
    assert schedule(listed.name) is listed
    assert listed.summary


def test_lookup_refuses_an_unknown_name() -> None:
    """A name that is not listed is a KeyError, which specs turn into a problem."""
    with pytest.raises(KeyError, match="zigzag"):
        schedule("zigzag")


@each_schedule
def test_order_is_complete(listed: Schedule) -> None:
    """Each stage runs each micro-batch once in each direction, forward first."""
    for stages, microbatches in SHAPES:
        for stage in range(stages):
            passes = list(operations(listed.order(stage, stages, microbatches)))
            assert sorted(passes) == [Operation(kind, m) for kind in "BF" for m in range(microbatches)]
            for m in range(microbatches):
                assert passes.index(Operation("F", m)) < passes.index(Operation("B", m))


@each_schedule
def test_never_deadlocks_and_holds_what_it_says(listed: Schedule) -> None:
    """The replay ends for every shape, and observes the in-flight count on which memory is priced."""
    for stages, microbatches in SHAPES:
        hops = [0.5] * (stages - 1)
        observed = replay(listed, [1.0] * stages, [2.0] * stages, hops, hops, [0.0] * stages, microbatches)
        expected = tuple(listed.in_flight(stage, stages, microbatches) for stage in range(stages))
        assert observed.peak_in_flight == expected


@each_schedule
def test_lanes_cover_forward_and_backward(listed: Schedule) -> None:
    """Each part of a stage's time is paced in exactly one lane."""
    assert sorted(part for lane in listed.lanes for part in lane) == ["backward", "forward"]


@each_schedule
def test_equal_stages_give_the_closed_forms(listed: Schedule) -> None:
    """With equal stages and free transfers both schedules idle for P-1 of M+P-1 slots.

    Narayanan et al. 2021, section 2.2.1: step = (M + P - 1) (f + b), bubble = (P - 1) / (M + P - 1).
    """
    for stages, microbatches in SHAPES:
        free = [0.0] * (stages - 1)
        observed = replay(listed, [1.0] * stages, [2.0] * stages, free, free, [0.0] * stages, microbatches)
        assert observed.step_time == pytest.approx(3.0 * (microbatches + stages - 1), rel=1e-12)
        bubble = sum(observed.idle) / (stages * observed.makespan)
        assert bubble == pytest.approx((stages - 1) / (microbatches + stages - 1), abs=1e-12)


def test_one_forward_one_backward_on_three_stages() -> None:
    """With 4 micro-batches, forward 1 s, backward 2 s and free transfers:

        stage 0   F0 F1 F2 .  .  .  .  B0 B0 F3 B1 B1 .  B2 B2 .  B3 B3
        stage 1   .  F0 F1 .  .  B0 B0 F2 B1 B1 F3 B2 B2 .  B3 B3
        stage 2   .  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3

    Stage 0 holds three micro-batches at once, stage 1 two, stage 2 one; the last pass ends after (4+3-1) x 3 = 18 s.
    """
    listed = schedule("1f1b")
    assert [listed.order(stage, 3, 4) for stage in range(3)] == ["FFFBFBBB", "FFBFBFBB", "FBFBFBFB"]
    assert [peak_in_flight(listed.order(stage, 3, 4)) for stage in range(3)] == [3, 2, 1]
    observed = replay(listed, [1.0] * 3, [2.0] * 3, [0.0] * 2, [0.0] * 2, [0.0] * 3, 4)
    assert observed.step_time == pytest.approx(18.0)
    assert observed.start == pytest.approx((0.0, 1.0, 2.0))
    assert observed.finish == pytest.approx((18.0, 16.0, 14.0))


def test_gpipe_on_three_stages() -> None:
    """With 2 micro-batches, forward 1 s, backward 2 s and free transfers:

        stage 0   F0 F1 .  .  .  .  .  .  B0 B0 B1 B1
        stage 1   .  F0 F1 .  .  .  B0 B0 B1 B1
        stage 2   .  .  F0 F1 B0 B0 B1 B1

    All stages hold both micro-batches; the last pass ends after (2+3-1) x 3 = 12 s.
    """
    listed = schedule("gpipe")
    assert [listed.order(stage, 3, 2) for stage in range(3)] == ["FFBB"] * 3
    observed = replay(listed, [1.0] * 3, [2.0] * 3, [0.0] * 2, [0.0] * 2, [0.0] * 3, 2)
    assert observed.step_time == pytest.approx(12.0)
    assert observed.finish == pytest.approx((12.0, 10.0, 8.0))
    assert observed.peak_in_flight == (2, 2, 2)


@pytest.mark.parametrize(("order", "peak"), [("FB", 1), ("FFBFBB", 2), ("FFBFBFBFFBBB", 3), ("FFFBBB", 3)])
def test_peak_in_flight_counts_what_is_held(order: str, peak: int) -> None:
    """The peak is the largest lead of forward over backward passes."""
    assert peak_in_flight(order) == peak
