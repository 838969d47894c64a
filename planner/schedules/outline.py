"""What the search knows of a schedule that is given by its passes: its critical path, and what its ranks hold.

Both are found in the order itself, so that a schedule needs no formula to be searched. Where all stages are alike, the
critical path of a step holds so many passes of each kind, and so many transfers; every other step with that order takes
at least as long as the passes and transfers on that path do. Orders of few stages and micro-batches are walked pass by
pass; beyond, path and holdings grow by as much with each stage and each micro-batch as they do there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count

from planner.schedules.base import BACKWARD, FORWARD, INPUT, WEIGHT, Pass, Schedule, peak_in_flight

RATIOS = ((100, 105, 95), (100, 125, 75), (100, 200, 75))
"""Times of F, I and W for which paths are found: layers without attention, with it, and recomputed ones."""
HOP = 1
"""Of a transfer, beside those: so short that it decides only between paths that are alike."""
MOST_STAGES = 12
"""Stages up to which critical paths are walked."""
MOST_ROUNDS = 4
"""Micro-batches a stage up to which orders are walked."""
SEARCHED_STAGES = 32
"""Stages up to which orders are walked for what they hold, and so for which they are searched."""
APART = 4
"""Between the two numbers of stages by which more are told: orders of some schedules differ with what is left of 4."""
KINDS = 3
"""Of passes, the first counts of a path."""
DIGIT = 20
"""Bits of each count of a stamp."""


@dataclass(frozen=True, slots=True)
class Path:
    """What lies on a critical path: passes of each kind (a whole backward pass is an I and a W), and transfers."""

    forward: float
    input: float
    weight: float
    joints: float
    """Between neighbouring ranks."""
    wraps: float
    """Between the last rank and the first."""


@cache
def critical_paths(schedule: Schedule, num_stages: int, num_microbatches: int) -> tuple[Path, ...]:
    """Return the critical path of a step with equal stages, for each of RATIOS.

    A schedule that never drains has none: what a step adds is what its ranks are busy.
    """
    passes = num_microbatches * schedule.virtual_stages
    if not schedule.flushes:
        return (Path(passes, passes, passes, 0.0, 0.0),)
    return tuple(
        Path(*map(float, _in_stages(schedule, num_stages, num_microbatches, ratio))) for ratio in range(len(RATIOS))
    )


@cache
def held_passes(schedule: Schedule, num_stages: int, num_microbatches: int) -> tuple[int, ...]:
    """Return `Schedule.in_flight` of every rank, without walking through long steps."""

    def counted(microbatches: int) -> tuple[int, ...]:
        return tuple(schedule.in_flight(rank, num_stages, microbatches) for rank in range(num_stages))

    return tuple(int(number) for number in _in_rounds(num_stages, num_microbatches, counted))


@cache
def open_microbatches(schedule: Schedule, num_stages: int, num_microbatches: int) -> int:
    """Return how many micro-batches of one direction have begun and are not back at the first stage, at most."""

    def counted(microbatches: int) -> tuple[int, ...]:
        first = schedule.rank(0, 0, num_stages)
        kinds = [one.kind for one in schedule.passes(num_stages, microbatches)[first] if one[2:4] == (0, 0)]
        back = "".join([kind for kind in kinds if kind != WEIGHT]).replace(INPUT, BACKWARD)
        return (peak_in_flight(back),)

    return int(_in_rounds(num_stages, num_microbatches, counted)[0])


def _in_stages(schedule: Schedule, num_stages: int, num_microbatches: int, ratio: int) -> tuple[Fraction, ...]:
    """Return the counts of the critical path; of more than MOST_STAGES stages, by what two smaller numbers idle."""
    if num_stages <= MOST_STAGES:
        return _in_rounds(num_stages, num_microbatches, lambda number: _walked(schedule, num_stages, number, ratio))
    large = MOST_STAGES - (MOST_STAGES - num_stages) % APART
    less, more = (
        _idle(schedule, stages, _alike(schedule, num_stages, num_microbatches, stages), ratio)
        for stages in (large - APART, large)
    )
    further = Fraction(num_stages - large, APART)
    grown = (second + further * (second - first) for first, second in zip(less, more, strict=True))
    busy = num_microbatches * schedule.virtual_stages
    return tuple(number + busy * (kind < KINDS) for kind, number in enumerate(grown))


def _idle(schedule: Schedule, num_stages: int, num_microbatches: int, ratio: int) -> tuple[Fraction, ...]:
    """Return the counts of the critical path without the passes that a rank runs anyway."""
    busy = num_microbatches * schedule.virtual_stages
    counts = _in_stages(schedule, num_stages, num_microbatches, ratio)
    return tuple(number - busy * (kind < KINDS) for kind, number in enumerate(counts))


def _alike(schedule: Schedule, num_stages: int, num_microbatches: int, fewer: int) -> int:
    """Return the micro-batches that are for `fewer` stages what `num_microbatches` are for `num_stages`."""
    wanted = num_microbatches * fewer // num_stages
    return next(number for number in count(max(1, wanted)) if not schedule.blocker(fewer, number))


def _in_rounds(
    num_stages: int, num_microbatches: int, counted: Callable[[int], tuple[int, ...]]
) -> tuple[Fraction, ...]:
    """Return what is `counted` for a number of micro-batches; for many, by what MOST_ROUNDS and two more count."""
    most, more = MOST_ROUNDS * num_stages, (MOST_ROUNDS + 2) * num_stages
    if num_microbatches <= most:
        return tuple(map(Fraction, counted(num_microbatches)))
    further = Fraction(num_microbatches - most, more - most)
    return tuple(first + further * (second - first) for first, second in zip(counted(most), counted(more), strict=True))


@cache
def _walked(schedule: Schedule, num_stages: int, num_microbatches: int, ratio: int) -> tuple[int, ...]:
    """Return forward, input and weight passes, joints and wraps on the critical path.

    A stamp is a time with what took it: the time in the highest bits of a number, and the counts below. Later stamps
    are larger, and passes add theirs, so that the largest stamp tells its own path. Where a rank begins the next step
    on its own, what counts is from its first pass to its last.
    """
    stamps = _stamps(ratio)
    joint, wrap = ((HOP << 5 * DIGIT) + (1 << number * DIGIT) for number in (3, 4))
    last = num_stages * schedule.virtual_stages - 1
    orders = schedule.passes(num_stages, num_microbatches)
    arrived: dict[tuple[str, int, int, int], int] = {}
    place, begun, free, ready = [0] * num_stages, [0] * num_stages, [0] * num_stages, list(range(num_stages))
    while ready:
        rank = ready.pop()
        for runs in _units(orders[rank], place[rank]):
            inputs = [_input(one, arrived) for one in runs]
            if min(inputs) < 0:
                break
            start = max(free[rank], *inputs)
            if not place[rank] and schedule.joins_steps:
                begun[rank] = start
            free[rank] = start + sum(stamps[one.kind] for one in runs)
            place[rank] += len(runs)
            for one in runs:
                goal = _goal(one, last)
                if goal is None:
                    continue
                there = schedule.rank(goal[1], one.direction, num_stages)
                sent = 0 if there == rank else joint if abs(there - rank) == 1 else wrap
                arrived[goal] = free[rank] + sent
                ready += [there] * (there != rank)
    first, end = max(zip(begun, free, strict=True), key=lambda rank: (rank[1] >> 5 * DIGIT) - (rank[0] >> 5 * DIGIT))
    return tuple(_count(end, number) - _count(first, number) for number in range(5))


def _count(stamp: int, number: int) -> int:
    return stamp >> number * DIGIT & (1 << DIGIT) - 1


def _stamps(ratio: int) -> dict[str, int]:
    """Return the stamps of passes, by kind."""
    found = {
        kind: (RATIOS[ratio][n] << 5 * DIGIT) + (1 << n * DIGIT) for n, kind in enumerate((FORWARD, INPUT, WEIGHT))
    }
    return {**found, BACKWARD: found[INPUT] + found[WEIGHT]}


def _units(order: tuple[Pass, ...], place: int) -> Iterator[tuple[Pass, ...]]:
    """Yield what a rank runs from a place in its order on: a pass, or two at once."""
    while place < len(order):
        runs = order[place : place + 1 + order[place].paired]
        yield runs
        place += len(runs)


def _input(one: Pass, arrived: dict[tuple[str, int, int, int], int]) -> int:
    """Return the stamp of what a pass needs; negative if it has not arrived."""
    if one.kind == WEIGHT or (one.kind == FORWARD and one.stage == 0):
        return 0
    return arrived.get((FORWARD if one.kind == FORWARD else BACKWARD, one.stage, one.direction, one.microbatch), -1)


def _goal(one: Pass, last: int) -> tuple[str, int, int, int] | None:
    """Return what waits for the result of a pass: kind, stage, direction, micro-batch; None if nothing does."""
    if one.kind == FORWARD:
        kind, stage = (BACKWARD, last) if one.stage == last else (FORWARD, one.stage + 1)
    elif one.kind == WEIGHT or one.stage == 0:
        return None
    else:
        kind, stage = BACKWARD, one.stage - 1
    return kind, stage, one.direction, one.microbatch
