"""The replay of any order of passes: by hand, and against the replay of orders that are spelled in letters."""

# ruff: noqa: S311 (cases are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pipelines import SPELLED, Pipeline, alike, drawn
from planner.schedules import Orders, Pass, Schedule, schedule
from planner.simulate import Replay, StageTimes, replay, replay_orders
from planner.simulate.board import Board


def by_passes(listed: Schedule, pipeline: Pipeline) -> Replay:
    """Return the replay by passes of a pipeline whose joints take equally long between the same ranks."""
    stages = len(pipeline.sync)
    times = {
        (0, number): StageTimes(forward=ahead, backward=back, weight=0.0)
        for number, (ahead, back) in enumerate(zip(pipeline.forward, pipeline.backward, strict=True))
    }
    links = {}
    for number, (ahead, back) in enumerate(zip(pipeline.hops_forward, pipeline.hops_backward, strict=True)):
        here, there = number % stages, (number + 1) % stages
        links[here, there], links[there, here] = ahead, back
    return replay_orders(listed, times, links, pipeline.sync, pipeline.num_microbatches)


@pytest.mark.parametrize("listed", SPELLED, ids=lambda listed: listed.name)
def test_letters_and_passes_take_alike(listed: Schedule) -> None:
    """Both replays agree on unlike stages and links; two ranks with chunks, which share links, have none that count."""
    draw = random.Random(17)
    for _ in range(150):
        pipeline = drawn(draw, 40, listed)
        stages, joints = len(pipeline.sync), len(pipeline.hops_forward)
        ahead = [pipeline.hops_forward[joint % stages] * (stages > 2) for joint in range(joints)]
        back = [pipeline.hops_backward[joint % stages] * (stages > 2) for joint in range(joints)]
        pipeline = replace(pipeline, hops_forward=ahead, hops_backward=back)
        expected, observed = replay(listed, *pipeline.times), by_passes(listed, pipeline)
        assert observed.step_time == pytest.approx(expected.step_time, rel=1e-9)
        assert observed.finish == pytest.approx(expected.finish, rel=1e-9)
        assert observed.start == pytest.approx(expected.start, rel=1e-9, abs=1e-9)
        assert observed.busy == pytest.approx(expected.busy, rel=1e-9)
        assert observed.exposed_sync == pytest.approx(expected.exposed_sync, rel=1e-9)
        assert observed.peak_in_flight == expected.peak_in_flight
        assert observed.makespan == pytest.approx(expected.makespan, rel=1e-9)


def given(orders: Orders, **fields: object) -> Schedule:
    """Return a schedule of two ranks that runs `orders`."""
    return replace(schedule("zb-h1"), name="given", orders=lambda _stages, _batches: orders, **fields)  # type: ignore[arg-type]


TIMES = {(0, stage): StageTimes(forward=1.0, backward=3.0, weight=1.0, sync=5.0) for stage in range(4)}
LINKS = {(0, 1): 0.5, (1, 0): 0.25}


def test_backward_passes_in_two_parts() -> None:
    """One micro-batch, F 1 s, I 2 s, W 1 s, transfers of 0.5 s ahead and 0.25 s back.

    Rank 1: F 1.5-2.5, I 2.5-4.5, W 4.5-5.5. Rank 0 goes on when I has arrived, at 4.75: I 4.75-6.75, W 6.75-7.75.
    """
    orders = tuple(tuple(Pass(kind, 0, rank) for kind in "FIW") for rank in range(2))
    observed = replay_orders(given(orders), TIMES, LINKS, [0.0, 3.0], 1)
    assert observed.finish == pytest.approx((7.75, 5.5))
    assert observed.start == pytest.approx((0.0, 1.5))
    assert observed.busy == pytest.approx((4.0, 4.0))
    assert observed.step_time == pytest.approx(8.5)
    assert observed.exposed_sync == (0.0, 3.0)


def test_a_turn_stays_on_its_rank() -> None:
    """A V of two ranks: F on 0, 1, 1, 0 at 0-1, 1.5-2.5, 2.5-3.5, 3.75-4.75 s; B on 0, 1, 1, 0 of 3 s each after it.

    4.75-7.75, then 0.5 s to rank 1: 8.25-11.25, 11.25-14.25, and 0.25 s back: 14.5-17.5.
    """
    orders = tuple(
        (Pass("F", 0, rank), Pass("F", 0, 3 - rank), Pass("B", 0, 3 - rank), Pass("B", 0, rank)) for rank in range(2)
    )
    vee = given(orders, virtual_stages=2, placement=schedule("zbv").placement)
    assert replay_orders(vee, TIMES, LINKS, [0.0, 0.0], 1).finish == pytest.approx((17.5, 14.25))


def test_pairs_wait_for_both_and_end_together() -> None:
    """Rank 0 pairs F1 with B0, which arrives at 5.75 s: F 1.5-2.5 and B 2.5-5.5 on rank 1, 0.25 s back.

    The pair ends at 9.75. Rank 1 gets F1 at 10.25, and B1 is back on rank 0 at 10.25 + 4 + 0.25 = 14.5, until 17.5 s.
    """
    first = (Pass("F", 0, 0), Pass("F", 1, 0, paired=True), Pass("B", 0, 0), Pass("B", 1, 0))
    second = tuple(Pass(kind, number, 1) for number in range(2) for kind in "FB")
    assert replay_orders(given((first, second)), TIMES, LINKS, [0.0, 0.0], 2).finish == pytest.approx((17.5, 14.25))


def test_directions_share_links_and_ranks() -> None:
    """Two pipelines of one micro-batch each through the same two ranks: from either end what the other one sees."""
    observed = alike(schedule("chimera"), (2, 2), (1.0, 1.0, 1.0), hop=0.5)
    assert observed.finish[0] == observed.finish[1]
    assert observed.busy == (6.0, 6.0)
    # F 0-1, the other's F 1.5-2.5, its B 2.5-4.5, and the first one's B, whose gradient left at 4.5: 5-7
    assert observed.finish[0] == pytest.approx(7.0)


def test_eager_exchanges_hide_behind_passes_of_other_stages() -> None:
    """On both ranks of `chimera` one stage ends at 4.5 s and the other at 7 s.

    Exchanges of 2 s run from 4.5 to 6.5 and from 7 to 9; of 4 s from 4.5 to 8.5 and on to 12.5.
    """
    two, four = (alike(schedule("chimera"), (2, 2), hop=0.5, sync=sync) for sync in (2.0, 4.0))
    assert two.step_time == pytest.approx(9.0)
    assert two.exposed_sync == pytest.approx((2.0, 2.0))
    assert four.step_time == pytest.approx(12.5)


def test_joined_steps_last_as_long_as_the_busiest_rank() -> None:
    """zb-h2 of 4 ranks and 8 micro-batches: each of them works 24 s without a break, the last from 3 to 27 s."""
    joined = alike(schedule("zb-h2"), (4, 8))
    assert joined.finish == (24.0, 25.0, 26.0, 27.0)
    assert joined.step_time == joined.makespan == 24.0
    waiting = alike(replace(schedule("zb-h2"), joins_steps=False), (4, 8))
    assert waiting.step_time == waiting.makespan == 27.0


def test_a_deadlock_is_told() -> None:
    """Rank 0 wants micro-batch 0 back before rank 1 has seen micro-batch 1, which rank 0 then sends."""
    first = tuple(Pass(kind, number, 0) for number in range(2) for kind in "FB")
    second = tuple(Pass(kind, number, 1) for kind in "FB" for number in range(2))
    message = "schedule given is stuck: rank 0 waits for the input of 0B0; rank 1 waits for the input of 1F1"
    with pytest.raises(AssertionError, match=message):
        replay_orders(given((first, second)), TIMES, LINKS, [0.0, 0.0], 2)


def test_steps_without_a_flush_run_into_one_another() -> None:
    """Ranks of 3 and 6 s a micro-batch, 4 of them: 24 s a step, and with 2 s of exchange 26 s."""
    listed = schedule("pipedream-2bw")
    times = {
        (0, 0): StageTimes(forward=1.0, backward=2.0, weight=0.0),
        (0, 1): StageTimes(forward=2.0, backward=4.0, weight=0.0),
    }
    free = {(0, 1): 0.0, (1, 0): 0.0}
    assert replay_orders(listed, times, free, [0.0, 0.0], 4).step_time == pytest.approx(24.0)
    observed = replay_orders(listed, times, free, [0.0, 2.0], 4)
    assert observed.step_time == pytest.approx(26.0)
    assert observed.exposed_sync == pytest.approx((2.0, 2.0))
    assert observed.idle == pytest.approx((12.0, 0.0))


def test_updates_after_each_micro_batch_are_work_of_the_rank() -> None:
    """The same ranks, with updates of 1 and 2 s behind each backward pass: 4 x (3 + 1) and 4 x (6 + 2) s.

    A result leaves before the update: of one micro-batch, rank 1 is back at 1 + 2 + 4 = 7 s, rank 0 at 9 s.
    """
    listed = schedule("pipedream")
    times = {
        (0, 0): StageTimes(forward=1.0, backward=2.0, weight=0.0),
        (0, 1): StageTimes(forward=2.0, backward=4.0, weight=0.0),
    }
    free = {(0, 1): 0.0, (1, 0): 0.0}
    observed = replay_orders(listed, times, free, [1.0, 2.0], 4)
    assert observed.step_time == pytest.approx(32.0)
    assert observed.busy == pytest.approx((16.0, 32.0))
    assert observed.exposed_sync == pytest.approx((4.0, 8.0))
    assert observed.idle == pytest.approx((16.0, 0.0))
    board = Board(listed, times, free, 2, 1, [1.0, 2.0])
    board.run(tuple(tuple(Pass(kind, 0, rank) for kind in "FB") for rank in range(2)))
    assert board.free == pytest.approx([10.0, 9.0])
