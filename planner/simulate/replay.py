"""Event replay of one step: passes run one by one, each when its rank is free and its input has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.schedules import BACKWARD, FORWARD, Schedule, peak_in_flight
from planner.simulate.chunks import chunked_ranks
from planner.simulate.rank import Rank, run, waiting_for
from planner.simulate.repetition import WINDOW, run_repeating

_TICK = 1e-12
"""[s] times are whole ticks, as floats: sums are exact up to 2**53 ticks (2.5 hours), so that equal means repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What was observed of one step; the tuples hold one entry for each stage."""

    step_time: float
    """[s] from the first pass to the end of the last gradient exchange."""
    start: tuple[float, ...]
    """[s] at which the stage's first pass began."""
    finish: tuple[float, ...]
    """[s] at which the stage's last pass ended."""
    busy: tuple[float, ...]
    """[s] that the stage spent on passes, on what blocks it behind them, and on updates that come between them."""
    peak_in_flight: tuple[int, ...]
    """Most passes that the stage had run forward and not yet backward: micro-batches, where it is one chunk."""
    exposed_sync: tuple[float, ...]
    """[s] between the stage's last pass and the end of its exchange; all of them where each micro-batch has its own."""
    joins_steps: bool = False
    """Whether stages begin the next step at times as far apart as in this one."""

    @property
    def makespan(self) -> float:
        """[s] between the first and the last pass: of all stages, or of the longest where steps are joined."""
        if self.joins_steps:
            return max(finish - start for start, finish in zip(self.start, self.finish, strict=True))
        return max(self.finish) - min(self.start)

    @property
    def idle(self) -> tuple[float, ...]:
        """[s] that each stage's compute lane idled between the first and the last pass of all stages."""
        return tuple(self.makespan - busy for busy in self.busy)


def replay(
    schedule: Schedule,
    forward: Sequence[float],
    backward: Sequence[float],
    hops_forward: Sequence[float],
    hops_backward: Sequence[float],
    sync: Sequence[float],
    num_microbatches: int,
    *,
    skip: bool = True,
) -> Replay:
    """Run one step of `schedule` pass by pass and return what was observed.

    A rank runs its passes in order, one at a time. A transfer starts when the sender's pass has ended and the link is
    free; each direction of each joint is a link of its own, and transfers leave the compute lanes alone.

    Args:
        schedule: gives the order of passes.
        forward: [s] of one micro-batch, by stage; with chunks all first ones, then all second ones, and so on.
        backward: [s] of one micro-batch, in the same order.
        hops_forward: [s] of one transfer of activations, by joint; one entry less than `forward`.
        hops_backward: [s] of one transfer of gradients, by joint.
        sync: [s] that each stage needs after its last pass.
        num_microbatches: of one step, at least one.
        skip: whether stretches that repeat exactly are counted instead of run; the result is the same.

    Raises:
        AssertionError: the schedule's order is incomplete or can never be finished.

    """
    num_stages, num_passes = len(sync), schedule.virtual_stages * num_microbatches
    orders = [schedule.order(stage, num_stages, num_microbatches) for stage in range(num_stages)]
    _check_orders(schedule, orders, num_passes)
    times = [_ticks(values) for values in (forward, backward, hops_forward, hops_backward)]
    ring = schedule.virtual_stages > 1
    ranks = chunked_ranks(schedule, orders, times) if ring else _ranks(orders, times, num_microbatches)
    start = _first_starts(times[0][:num_stages], times[2])
    if skip:
        run_repeating(ranks, 2 * num_stages * schedule.virtual_stages if ring else WINDOW)
    if not run(ranks, 2 * num_passes):
        raise AssertionError(f"schedule {schedule.name} is stuck: {'; '.join(waiting_for(ranks))}")
    finish = [rank.free for rank in ranks]
    last = _ticks(sync)
    ends = [end + exchange for end, exchange in zip(finish, last, strict=True)]
    return Replay(
        step_time=max(ends) * _TICK,
        start=tuple(begun * _TICK for begun in start),
        finish=tuple(end * _TICK for end in finish),
        busy=tuple(num_microbatches * (rank.forward + rank.backward) * _TICK for rank in ranks),
        peak_in_flight=tuple(peak_in_flight(order) for order in orders),
        exposed_sync=tuple(exchange * _TICK for exchange in last),
    )


def lower_bound(
    forward: Sequence[float],
    backward: Sequence[float],
    hops_forward: Sequence[float],
    hops_backward: Sequence[float],
    sync: Sequence[float],
    num_microbatches: int,
) -> float:
    """Return a step time [s] that no order of the passes can beat; the arguments are those of `replay`.

    max_s [ sum_{j<s} (f_j + hop_j) + M (f_s + b_s) + max(sync_s, max_{k<s} (sum_{k<=j<s} (b_j + hop_j) + sync_k)) ]:
    a stage cannot start before its first input, has M passes each way to do, and its last pass, which is a backward
    one, still has to reach every stage before it. With chunks all of them are passes to do, and the first ones are what
    lies before and behind, for they are the least.
    """
    bound = fill = tail = 0.0
    to_next = [*hops_forward, 0.0]
    from_next = [*hops_backward, 0.0]
    num_stages = len(sync)
    for stage in range(num_stages):
        tail = max(sync[stage], tail)
        own = sum(forward[stage::num_stages]) + sum(backward[stage::num_stages])
        bound = max(bound, fill + num_microbatches * own + tail)
        fill += forward[stage] + to_next[stage]
        tail += backward[stage] + from_next[stage]
    return bound


def _ranks(orders: Sequence[str], times: Sequence[Sequence[float]], num_microbatches: int) -> list[Rank]:
    """Return ranks in a row, from [ticks] forward, backward and transfers both ways."""
    forward, backward, hops_forward, hops_backward = times
    rows = zip(orders, forward, backward, [*hops_forward, 0.0], [0.0, *hops_backward], strict=True)
    ranks = [Rank(*row) for row in rows]
    for rank, following in pairwise(ranks):
        rank.forward_outbox, following.backward_outbox = following.forward_inbox, rank.backward_inbox
    # the ends of the pipeline wait for nothing but their own lane
    ranks[0].forward_inbox.extend([0.0] * num_microbatches)
    ranks[-1].backward_inbox.extend([0.0] * num_microbatches)
    return ranks


def _ticks(seconds: Sequence[float]) -> list[float]:
    return [float(round(value / _TICK)) for value in seconds]


def _check_orders(schedule: Schedule, orders: Sequence[str], num_passes: int) -> None:
    """Refuse an order that leaves passes out or, where no other stage would wait for it, puts B before its F."""
    for stage, order in enumerate(orders):
        counts = (order.count(FORWARD), order.count(BACKWARD), len(order))
        if counts != (num_passes, num_passes, 2 * num_passes):
            raise AssertionError(f"schedule {schedule.name}, stage {stage}: order {counts} for {num_passes}")
    held = 0
    for operation in orders[-1]:
        held += 1 if operation == FORWARD else -1
        if held < 0:
            raise AssertionError(f"schedule {schedule.name}: the last stage goes backward before it went forward")


def _first_starts(forward: Sequence[float], hops_forward: Sequence[float]) -> list[float]:
    """Return [ticks] at which each rank's first pass, the forward pass of micro-batch 0, begins."""
    starts = [0.0]
    for time, hop in zip(forward[:-1], hops_forward, strict=False):
        starts.append(starts[-1] + time + hop)
    return starts
