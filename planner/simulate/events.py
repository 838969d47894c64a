"""Event replay of any schedule, from the passes of its ranks: each runs when its rank is free and its input is there.

A pass is looked at once when it runs and at most once when its rank has to wait for it, so that the replay takes as
long as there are passes, whatever waits for what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.schedules import FORWARD, INPUT, WEIGHT, Orders, Pass, Schedule, peak_in_flight
from planner.simulate.replay import Replay

NEVER = -1.0
"""[s] arrival of what has not arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """What one virtual stage takes [s] for one micro-batch, on the rank that runs it."""

    forward: float
    backward: float
    """The whole of it."""
    weight: float
    """The part of it that makes the gradients of the weights."""
    sync: float = 0.0
    """Of the exchange of its gradients, where it does not wait for the other stages of the rank."""


@dataclass(slots=True)
class _Way:
    """What a pass of a stage does: how long it takes, and where its result goes."""

    time: float
    to: int
    """Rank that takes the result."""
    shift: int
    """From the place of the pass to that of the one that needs the result; 0 if nobody does."""
    hop: float = 0.0
    link: list[float] = field(default_factory=lambda: [0.0])
    """[s] at which the link is free."""


def replay_orders(
    schedule: Schedule,
    times: Mapping[tuple[int, int], StageTimes],
    links: Mapping[tuple[int, int], float],
    sync: Sequence[float],
    num_microbatches: int,
) -> Replay:
    """Run one step of `schedule` pass by pass and return what was observed.

    A rank runs its passes in order, one at a time. A transfer starts when the sender's pass has ended and the link is
    free; from each rank to each other one there is a link of its own, and transfers leave the compute lanes alone. Where
    a stage and the next lie on the same rank, nothing is sent.

    Args:
        schedule: gives placement and order of the passes.
        times: of every (direction, virtual stage).
        links: [s] of one transfer, by (sender, receiver).
        sync: [s] that each rank needs after its last pass; ignored where the schedule exchanges eagerly.
        num_microbatches: of one step, all directions together.

    Raises:
        AssertionError: the schedule's order can never be finished.

    """
    num_stages = len(sync)
    orders = schedule.passes(num_stages, num_microbatches)
    start, finish, ended = _run(schedule, orders, _ways(schedule, times, links, num_stages, num_microbatches))
    exposed = [*sync]
    if schedule.eager_sync:
        exposed = [
            _last_exchange(finish[rank], sorted((ended[one], times[one].sync) for one in hosted))
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


def _ways(
    schedule: Schedule,
    times: Mapping[tuple[int, int], StageTimes],
    links: Mapping[tuple[int, int], float],
    num_stages: int,
    num_microbatches: int,
) -> dict[str, list[_Way]]:
    """Return by kind what the passes of each stage do, those of direction 1 after those of direction 0."""
    last = num_stages * schedule.virtual_stages - 1
    free = {pair: [0.0] for pair in links}
    ways: dict[str, list[_Way]] = {kind: [] for kind in "FBIW"}
    for direction in range(schedule.directions):
        for stage in range(last + 1):
            here, took = schedule.rank(stage, direction, num_stages), times[direction, stage]

            def way(time: float, step: int, *, here: int = here, stage: int = stage, side: int = direction) -> _Way:
                if not 0 <= stage + step <= last:
                    return _Way(time=time, to=here, shift=0)
                there = schedule.rank(stage + step, side, num_stages)
                made = _Way(time=time, to=there, shift=step * num_microbatches)
                if there != here:
                    made.hop, made.link = links[here, there], free[here, there]
                return made

            ways["F"].append(way(took.forward, 1))
            ways["B"].append(way(took.backward, -1))
            ways["I"].append(way(took.backward - took.weight, -1))
            ways["W"].append(_Way(time=took.weight, to=here, shift=0))
    return ways


def _run(
    schedule: Schedule, orders: Orders, ways: Mapping[str, Sequence[_Way]]
) -> tuple[list[float], list[float], dict[tuple[int, int], float]]:
    """Return [s] first start and last end of every rank, and the last end of every (direction, stage).

    Raises:
        AssertionError: ranks wait for one another.

    """
    num_ranks, stages = len(orders), len(orders) * schedule.virtual_stages
    places = len(ways[FORWARD])
    num_microbatches = sum(run.kind == FORWARD for passes in orders for run in passes) * schedule.directions // places
    arrived = {True: [NEVER] * (places * num_microbatches), False: [NEVER] * (places * num_microbatches)}
    ahead, back = arrived[True], arrived[False]
    for direction in range(schedule.directions):
        first = direction * stages * num_microbatches
        ahead[first : first + num_microbatches] = [0.0] * num_microbatches
    free, start, position = [0.0] * num_ranks, [NEVER] * num_ranks, [0] * num_ranks
    awaited: list[tuple[bool, int] | None] = [None] * num_ranks
    last_end = [0.0] * places
    ready = list(range(num_ranks))
    while ready:
        rank = ready.pop()
        passes, now, at = orders[rank], free[rank], position[rank]
        while at < len(passes):
            kind, microbatch, stage, direction = passes[at]
            where = direction * stages + stage
            way = ways[kind][where]
            if kind == WEIGHT:
                now += way.time
                last_end[where] = now
                at += 1
                continue
            place, forward = where * num_microbatches + microbatch, kind == FORWARD
            inbox = ahead if forward else back
            arrival = inbox[place]
            if arrival < 0.0:
                awaited[rank] = (forward, place)
                break
            begun = arrival if arrival > now else now  # noqa: FURB136 (a call of max costs more than the rest)
            if at == 0:
                start[rank] = begun
            now = begun + way.time
            at += 1
            if not forward:
                last_end[where] = now
            if not way.shift:
                if forward:  # the last stage goes backward on what it has made
                    back[place] = now
                continue
            to, target = way.to, place + way.shift
            if to == rank:
                inbox[target] = now
                continue
            link = way.link
            link[0] = (link[0] if link[0] > now else now) + way.hop
            inbox[target] = link[0]
            if awaited[to] == (forward, target):
                awaited[to] = None
                ready.append(to)
        free[rank], position[rank] = now, at
    if any(at < len(passes) for at, passes in zip(position, orders, strict=True)):
        raise AssertionError(f"schedule {schedule.name} is stuck: {'; '.join(_waiting(orders, position))}")
    ended = {divmod(where, stages): end for where, end in enumerate(last_end)}
    return start, free, ended


def _waiting(orders: Orders, position: Sequence[int]) -> list[str]:
    """Return what each unfinished rank waits for."""
    return [
        f"rank {rank} waits for the input of {describe(passes[at])}"
        for rank, (passes, at) in enumerate(zip(orders, position, strict=True))
        if at < len(passes)
    ]


def describe(run: Pass) -> str:
    """Return a pass in words of a letter: ``3F0`` is micro-batch 0 forward on virtual stage 3."""
    return f"{run.stage}{run.kind}{run.microbatch}"


def _last_exchange(finish: float, exchanges: Sequence[tuple[float, float]]) -> float:
    """Return the seconds of exchanges after a rank's last pass, each begun when its stage was done, one at a time."""
    end = 0.0
    for done, exchange in exchanges:
        end = max(end, done) + exchange
    return max(0.0, end - finish)


def _busy(passes: Sequence[Pass], times: Mapping[tuple[int, int], StageTimes]) -> float:
    """Return the seconds that a rank spends on its passes."""
    counts: dict[tuple[str, int, int], int] = {}
    for kind, _, stage, direction in passes:
        key = (kind, stage, direction)
        counts[key] = counts.get(key, 0) + 1
    total = 0.0
    for (kind, stage, direction), number in counts.items():
        took = times[direction, stage]
        whole = took.forward if kind == FORWARD else took.backward
        part = took.weight if kind == WEIGHT else whole - took.weight if kind == INPUT else whole
        total += number * part
    return total
