"""Event replay of any schedule, from the passes of its ranks: each runs when its rank is free and its input is there.

A pass is looked at once when it runs and at most once when its rank has to wait for it, so that the replay takes as
long as there are passes, whatever waits for what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.schedules import Pass, Schedule, peak_in_flight
from planner.simulate.board import Board, StageTimes
from planner.simulate.replay import Replay

SETTLED = 4
"""Micro-batches of each rank after which a pipeline that never drains repeats itself."""


def replay_orders(
    schedule: Schedule,
    times: Mapping[tuple[int, int], StageTimes],
    links: Mapping[tuple[int, int], float],
    sync: Sequence[float],
    num_microbatches: int,
) -> Replay:
    """Run one step of `schedule` pass by pass and return what was observed.

    A rank runs its passes in order, one at a time. A transfer starts when the sender's pass has ended and the link is
    free; from each rank to each other one there is a link of its own, and transfers leave the compute lanes alone.
    Where a stage and the next lie on the same rank, nothing is sent.

    Args:
        schedule: gives placement and order of the passes.
        times: of every (direction, virtual stage).
        links: [s] of one transfer, by (sender, receiver).
        sync: [s] that each rank needs after its last pass, or after each backward pass where the schedule updates
            weights then; ignored where it exchanges eagerly.
        num_microbatches: of one step, all directions together.

    Raises:
        AssertionError: the schedule's order can never be finished.

    """
    if not schedule.flushes:
        return _unbroken(schedule, times, links, sync, num_microbatches)
    num_stages = len(sync)
    orders = schedule.passes(num_stages, num_microbatches)
    board = Board(schedule, times, links, num_stages, num_microbatches)
    board.run(orders)
    start, finish = board.start, board.free
    exposed = [*sync]
    if schedule.eager_sync:
        exposed = [
            last_exchange(finish[rank], sorted((board.ended(one), times[one].sync) for one in hosted))
            for rank, hosted in enumerate(schedule.hosted(num_stages))
        ]
    ends = [last + exchange for last, exchange in zip(finish, exposed, strict=True)]
    begun = start if schedule.joins_steps else [0.0] * num_stages
    return Replay(
        step_time=max(end - first for end, first in zip(ends, begun, strict=True)),
        start=tuple(start),
        finish=tuple(finish),
        busy=tuple(_busy(passes, times) for passes in orders),
        peak_in_flight=tuple(peak_in_flight("".join([run.kind for run in passes])) for passes in orders),
        exposed_sync=tuple(exposed),
        joins_steps=schedule.joins_steps,
    )


def _unbroken(
    schedule: Schedule,
    times: Mapping[tuple[int, int], StageTimes],
    links: Mapping[tuple[int, int], float],
    sync: Sequence[float],
    num_microbatches: int,
) -> Replay:
    """Return what a step adds to many steps that run into one another, each rank waiting for its own exchange alone.

    Updates after every micro-batch are work of the rank like its passes.
    """
    num_stages = len(sync)
    before = num_microbatches * -(-SETTLED * num_stages // num_microbatches)
    after = [*sync] if schedule.updates_each else [0.0] * num_stages
    ends = []
    for number in (before, before + num_microbatches):
        board = Board(schedule, times, links, num_stages, number, after)
        board.run(schedule.passes(num_stages, number))
        ends.append(max(board.free))
    orders = schedule.passes(num_stages, num_microbatches)
    updates = tuple(num_microbatches * update for update in after)
    busy = tuple(_busy(passes, times) + update for passes, update in zip(orders, updates, strict=True))
    once = [0.0] * num_stages if schedule.updates_each else sync
    pace = ends[1] - ends[0]
    step = max(pace, *(worked + exchange for worked, exchange in zip(busy, once, strict=True)))
    return Replay(
        step_time=step,
        start=(0.0,) * num_stages,
        finish=(pace,) * num_stages,
        busy=busy,
        peak_in_flight=tuple(peak_in_flight("".join([run.kind for run in passes])) for passes in orders),
        exposed_sync=updates if schedule.updates_each else (step - pace,) * num_stages,
        joins_steps=True,
    )


def last_exchange(finish: float, exchanges: Sequence[tuple[float, float]]) -> float:
    """Return the seconds of exchanges after a rank's last pass, each begun when its stage was done, one at a time."""
    end = 0.0
    for done, exchange in exchanges:
        end = max(end, done) + exchange
    return max(0.0, end - finish)


def _busy(passes: Sequence[Pass], times: Mapping[tuple[int, int], StageTimes]) -> float:
    """Return the seconds that a rank spends on its passes."""
    counts: dict[tuple[str, int, int], int] = {}
    for kind, _, stage, direction, _ in passes:
        key = (kind, stage, direction)
        counts[key] = counts.get(key, 0) + 1
    return sum(number * times[direction, stage].of(kind) for (kind, stage, direction), number in counts.items())
