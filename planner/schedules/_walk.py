"""One step of a schedule where all stages are alike, pass by pass: what lies on its critical path.

A stamp is a time with what took it: the time in the highest bits of a number, and counts of passes and transfers below.
Later stamps are larger, and passes add theirs, so that the largest stamp tells its own path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from planner.schedules.base import BACKWARD, FORWARD, INPUT, WEIGHT, Pass, Schedule

DIGIT = 20
"""Bits of a count of a stamp."""
JOINT, WRAP = (1 << 5 * DIGIT) + (1 << 3 * DIGIT), (1 << 5 * DIGIT) + (1 << 4 * DIGIT)
"""Stamps of a transfer to a neighbouring rank, and to the first from the last one: so short that they decide only
between paths that are alike."""
Counts: TypeAlias = tuple[int, int, int]
"""Of F, I and W; a whole backward pass is one of each of the last two."""


class Times(NamedTuple):
    """What a pass takes, where a transfer takes 1."""

    forward: int
    input: int
    weight: int


@dataclass(frozen=True, slots=True)
class Walk:
    """What was met."""

    path: tuple[int, int, int, int, int]
    """F, I, W, and transfers between neighbouring ranks and between the last rank and the first, on the critical
    path; where a rank begins the next step on its own, of its passes from the first to the last."""
    remainders: tuple[tuple[Counts, ...], ...]
    """From the last pass to the end of the step, for each virtual stage of every rank."""


def walked(schedule: Schedule, num_stages: int, num_microbatches: int, times: Times) -> Walk:
    """Return what is met in a step whose passes all take `times`."""
    stamps = {kind: (times[place] << 5 * DIGIT) + (1 << place * DIGIT) for place, kind in enumerate("FIW")}
    stamps[BACKWARD] = stamps[INPUT] + stamps[WEIGHT]
    last = num_stages * schedule.virtual_stages - 1
    ranks = [[schedule.rank(number, way, num_stages) for number in range(last + 1)] for way in (0, 1)]
    orders = schedule.passes(num_stages, num_microbatches)
    arrived: dict[Pass, int] = {}
    done: dict[tuple[int, int], int] = {}
    links: dict[tuple[int, int], int] = {}
    place, begun, free, ready = [0] * num_stages, [0] * num_stages, [0] * num_stages, list(range(num_stages))
    while ready:
        rank = ready.pop()
        order = orders[rank]
        while place[rank] < len(order):
            runs = order[place[rank] : place[rank] + 1 + order[place[rank]].paired]
            inputs = [_arrival(one, arrived) for one in runs]
            if min(inputs) < 0:
                break
            start = max(free[rank], *inputs)
            begun[rank] = begun[rank] if place[rank] else start
            free[rank] = start + sum(stamps[one.kind] for one in runs)
            place[rank] += len(runs)
            for one in runs:
                goal = _goal(one, last)
                if one.kind != FORWARD:
                    done[one.direction, one.stage] = free[rank]
                if goal is None:
                    continue
                there = ranks[one.direction][goal.stage]
                if there == rank:
                    arrived[goal] = free[rank]
                    continue
                sent = JOINT if abs(there - rank) == 1 else WRAP
                arrived[goal] = links[rank, there] = max(free[rank], links.get((rank, there), 0)) + sent
                ready.append(there)
    starts = begun if schedule.joins_steps else [0] * num_stages
    first, end = max(zip(starts, free, strict=True), key=lambda rank: (rank[1] >> 5 * DIGIT) - (rank[0] >> 5 * DIGIT))
    path = tuple(_count(end, digit) - _count(first, digit) for digit in range(5))
    remainders = tuple(
        tuple(_between(done[stage], max(free)) for stage in held) for held in schedule.hosted(num_stages)
    )
    return Walk(path=path, remainders=remainders)  # type: ignore[arg-type]


def _count(stamp: int, digit: int) -> int:
    return stamp >> digit * DIGIT & (1 << DIGIT) - 1


def _between(earlier: int, later: int) -> Counts:
    forward, back, weight = (_count(later, digit) - _count(earlier, digit) for digit in range(3))
    return forward, back, weight


def _arrival(one: Pass, arrived: dict[Pass, int]) -> int:
    """Return the stamp of what a pass needs; negative if it has not arrived."""
    if one.kind == WEIGHT or (one.kind == FORWARD and one.stage == 0):
        return 0
    return arrived.get(_plain(FORWARD if one.kind == FORWARD else BACKWARD, one), -1)


def _plain(kind: str, one: Pass) -> Pass:
    return Pass(kind, one.microbatch, one.stage, one.direction)


def _goal(one: Pass, last: int) -> Pass | None:
    """Return the pass that waits for the result of another; None if none does."""
    if one.kind == FORWARD:
        return (
            Pass(BACKWARD, one.microbatch, last, one.direction)
            if one.stage == last
            else Pass(FORWARD, one.microbatch, one.stage + 1, one.direction)
        )
    if one.kind == WEIGHT or one.stage == 0:
        return None
    return Pass(BACKWARD, one.microbatch, one.stage - 1, one.direction)
