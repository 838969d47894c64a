"""What the search knows of a schedule that is given by its passes: its critical path, and what its ranks hold.

Both are found in the order itself, so that a schedule needs no formula to be searched. Where all stages are alike, the
critical path of a step holds so many passes of each kind, and so many transfers; every other step with that order takes
at least as long as the passes and transfers on that path do. Orders of few stages and micro-batches are walked pass by
pass; beyond, path and holdings grow by as much with each stage and each micro-batch as they do there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count

from planner.schedules._walk import Counts, Times, Walk, walked
from planner.schedules.base import BACKWARD, INPUT, WEIGHT, Schedule, peak_in_flight

RATIOS = (Times(100, 105, 95), Times(100, 125, 75), Times(100, 200, 75))
"""Times of F, I and W for which paths are found: layers without attention, with it, and recomputed ones."""
MOST_STAGES = 12
"""Stages up to which critical paths are walked."""
MOST_ROUNDS = 4
"""Micro-batches a stage up to which critical paths are walked."""
HELD_ROUNDS = 2
"""Micro-batches a stage up to which is counted what ranks hold: then they are full, or hold as much more with each."""
SEARCHED_STAGES = 32
"""Stages up to which orders are walked for what they hold, and so for which they are searched."""
APART = 4
"""Between the two numbers of stages by which more are told: orders of some schedules differ with what is left of 4."""
KINDS = 3
"""Of passes, the first counts of a path."""


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
    return _occupied(schedule, num_stages, num_microbatches)[:-1]


def open_microbatches(schedule: Schedule, num_stages: int, num_microbatches: int) -> int:
    """Return how many micro-batches of one direction have begun and are not back at the first stage, at most."""
    return _occupied(schedule, num_stages, num_microbatches)[-1]


@cache
def _occupied(schedule: Schedule, num_stages: int, num_microbatches: int) -> tuple[int, ...]:
    counts = _in_rounds(
        num_stages, num_microbatches, lambda number: _counted(schedule, num_stages, number), HELD_ROUNDS
    )
    return tuple(map(int, counts))


@cache
def _counted(schedule: Schedule, num_stages: int, num_microbatches: int) -> tuple[int, ...]:
    """Return the most that each rank holds, and that is under way from the first stage and back, counted one by one."""
    orders = schedule.passes(num_stages, num_microbatches)
    held = ["".join([one.kind for one in order]) for order in orders]
    first = [one.kind for one in orders[schedule.rank(0, 0, num_stages)] if one.stage == one.direction == 0]
    away = "".join([kind for kind in first if kind != WEIGHT]).replace(INPUT, BACKWARD)
    return tuple(map(peak_in_flight, (*held, away)))


@cache
def splits_backward(schedule: Schedule) -> bool:
    """Tell whether the gradient of a stage's input is handed on before those of its weights are made."""
    return BACKWARD not in schedule.order(0, 2, 4)


@cache
def remainders(schedule: Schedule, num_stages: int, num_microbatches: int) -> tuple[tuple[Counts, ...], ...]:
    """Return F, I and W passes between the last pass and the end of the step, of each virtual stage of every rank.

    Where stages are alike; the stages of a rank in the order of `Schedule.hosted`.
    """
    return _walked(schedule, num_stages, min(num_microbatches, MOST_ROUNDS * num_stages), 0).remainders


@cache
def _walked(schedule: Schedule, num_stages: int, num_microbatches: int, ratio: int) -> Walk:
    return walked(schedule, num_stages, num_microbatches, RATIOS[ratio])


def _in_stages(schedule: Schedule, num_stages: int, num_microbatches: int, ratio: int) -> tuple[Fraction, ...]:
    """Return the counts of the critical path; of more than MOST_STAGES stages, by what two smaller numbers idle."""
    if num_stages <= MOST_STAGES:
        return _in_rounds(
            num_stages, num_microbatches, lambda number: _walked(schedule, num_stages, number, ratio).path
        )
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
    num_stages: int, num_microbatches: int, counted: Callable[[int], tuple[int, ...]], rounds: int = MOST_ROUNDS
) -> tuple[Fraction, ...]:
    """Return what is `counted` for a number of micro-batches; beyond `rounds`, by what these and two more say."""
    most, more = rounds * num_stages, (rounds + 2) * num_stages
    if num_microbatches <= most:
        return tuple(map(Fraction, counted(num_microbatches)))
    further = Fraction(num_microbatches - most, more - most)
    return tuple(first + further * (second - first) for first, second in zip(counted(most), counted(more), strict=True))
