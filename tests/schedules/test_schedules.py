"""Every schedule whose ranks' letters say all of it, tested the moment it is listed; test_orders.py has all of them."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from pipelines import SPELLED
from planner.schedules import Operation, Schedule, operations, peak_in_flight, schedule
from planner.simulate import Replay, replay

SHAPES = tuple(product(range(1, 9), range(1, 17)))
"""(stages, micro-batches)"""


def shapes(listed: Schedule) -> list[tuple[int, int]]:
    """Return the shapes that a schedule can run."""
    return [shape for shape in SHAPES if not listed.blocker(*shape)]


def replayed(listed: Schedule, stages: int, microbatches: int, hop: float = 0.0) -> Replay:
    """Return the replay of stages that take 1 + 2 s a micro-batch, all chunks together."""
    chunks = listed.virtual_stages
    hops = [hop] * (stages * chunks - 1)
    forward, backward = [1.0 / chunks] * stages * chunks, [2.0 / chunks] * stages * chunks
    return replay(listed, forward, backward, hops, hops, [0.0] * stages, microbatches)


each_schedule = pytest.mark.parametrize("listed", SPELLED, ids=lambda listed: listed.name)


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
    """Each stage runs each chunk once for each micro-batch in each direction, forward first."""
    chunks = listed.virtual_stages
    for stages, microbatches in shapes(listed):
        for stage in range(stages):
            passes = list(operations(listed.order(stage, stages, microbatches)))
            assert sorted(passes) == [Operation(kind, m) for kind in "BF" for m in range(microbatches * chunks)]
        ahead = [listed.chunk(index, stages) for index in range(microbatches * chunks)]
        assert Counter(ahead) == dict.fromkeys(range(chunks), microbatches)


@each_schedule
def test_never_deadlocks_and_holds_what_it_says(listed: Schedule) -> None:
    """The replay ends for every shape, and observes the in-flight count on which memory is priced."""
    for stages, microbatches in shapes(listed):
        observed = replayed(listed, stages, microbatches, hop=0.5)
        expected = tuple(listed.in_flight(stage, stages, microbatches) for stage in range(stages))
        assert observed.peak_in_flight == expected


@each_schedule
def test_lanes_cover_forward_and_backward(listed: Schedule) -> None:
    """Each part of a stage's time is paced in exactly one lane."""
    assert sorted(part for lane in listed.lanes for part in lane) == ["backward", "forward"]


@each_schedule
def test_equal_stages_give_the_closed_forms(listed: Schedule) -> None:
    """With equal stages and free transfers all schedules idle for P-1 passes, each a v-th of a micro-batch.

    Narayanan et al. 2021, sections 2.2.1 and 2.2.2: step = (M + (P - 1) / v) (f + b); the bubble is (P - 1) / (v M) of
    the time without it.
    """
    for stages, microbatches in shapes(listed):
        observed = replayed(listed, stages, microbatches)
        filling = (stages - 1) / listed.virtual_stages
        assert observed.step_time == pytest.approx(3.0 * (microbatches + filling), rel=1e-10)
        bubble = sum(observed.idle) / sum(observed.busy)
        assert bubble == pytest.approx(filling / microbatches, abs=1e-10)


@pytest.mark.parametrize(("stages", "chunks", "batches"), [(4, 2, 8), (8, 12, 64), (35, 3, 280), (64, 8, 512)])
def test_interleaving_divides_the_bubble_by_its_chunks(stages: int, chunks: int, batches: int) -> None:
    """Narayanan et al. 2021, section 2.2.2: a bubble of (P - 1) / (v M), exactly, with equal stages, free transfers."""
    observed = replayed(schedule("interleaved", chunks), stages, batches)
    assert sum(observed.idle) / sum(observed.busy) == pytest.approx((stages - 1) / (chunks * batches), rel=1e-9)


@pytest.mark.parametrize(("stages", "chunks"), [(8, 3), (35, 3), (64, 2)])
def test_interleaving_holds_more_by_the_published_factor(stages: int, chunks: int) -> None:
    """Korthikanti et al. 2022, section 4.2.3: the first stage holds 1 + (P - 1) / (P v) times the layers of the model.

    Their models of 175, 530 and 1,008 B have P = 8, 35 and 64 stages.
    """
    listed = schedule("interleaved", chunks)
    held = listed.held(0, stages, 8 * stages)
    assert held / stages == pytest.approx(1 + (stages - 1) / (stages * chunks))
    assert schedule("1f1b").held(0, stages, 8 * stages) == stages


def test_interleaving_on_two_stages() -> None:
    """Two stages of two chunks each, four micro-batches in two groups of two, forward 1 s and backward 2 s a chunk.

    The chunks of the passes forward are 0 0 1 1 0 0 1 1, backward 1 1 0 0 1 1 0 0. The last stage goes backward right
    after its first pass through the last chunk. Passes take 24 s, and the bubble is that of one pass: 27 s.
    """
    listed = schedule("interleaved", 2)
    assert [listed.order(stage, 2, 4) for stage in range(2)] == ["FFFFFBFBFBFBBBBB", "FFFBFBFBFBFBFBBB"]
    assert [listed.chunk(index, 2) for index in range(8)] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert [listed.in_flight(stage, 2, 4) for stage in range(2)] == [5, 3]
    free = [0.0] * 3
    observed = replay(listed, [1.0] * 4, [2.0] * 4, free, free, [0.0] * 2, 4)
    assert observed.step_time == pytest.approx(27.0)
    assert observed.start == pytest.approx((0.0, 1.0))


def test_interleaving_needs_groups_of_micro_batches() -> None:
    """Micro-batches go in groups of as many as there are stages, of which there are two or more."""
    listed = schedule("interleaved", 4)
    assert listed.virtual_stages == 4
    assert not listed.blocker(4, 8)
    assert listed.blocker(4, 6) == "needs micro-batches in groups of 4, one a stage; 6 are no whole groups"
    assert listed.blocker(1, 6) == "needs at least 2 stages"
    assert schedule("interleaved", 4) == listed


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
