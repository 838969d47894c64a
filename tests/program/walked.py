"""What the replay says of a schedule where stages are alike: the judge of `planner.schedules.outline`.

The replay is run with numbers for times that are read like strings: the time first, and then how often each kind of
pass and of transfer was part of it. The latest end tells what took so long.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, total_ordering

from planner.schedules import Schedule
from planner.simulate.board import Board, StageTimes

SIZE = 10**6
"""Of a digit."""
KINDS = ("forward", "input", "weight", "joints", "wraps")
RATIOS = ((100, 105, 95), (100, 125, 75), (100, 200, 75))
"""Times of F, I and W; a transfer takes 1."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Long:
    """A whole number that stays exact beside the replay's floats, which are whole, too."""

    number: int

    def __add__(self, other: Long | float) -> Long:
        """Return the sum."""
        return Long(self.number + _number(other))

    def __sub__(self, other: Long | float) -> Long:
        """Return the difference."""
        return Long(self.number - _number(other))

    def __lt__(self, other: Long | float) -> bool:
        """Tell whether the other is more."""
        return self.number < _number(other)

    def __eq__(self, other: object) -> bool:
        """Tell whether both are alike."""
        return isinstance(other, Long | float) and self.number == _number(other)

    __radd__ = __add__
    __hash__ = None  # type: ignore[assignment]


def _number(one: Long | float) -> int:
    return one.number if isinstance(one, Long) else int(one)


@cache
def step_counts(listed: Schedule, stages: int, microbatches: int, ratio: int) -> dict[str, int]:
    """Return how often each kind is on the longest path of a step."""
    board = _run(listed, stages, microbatches, ratio)
    lengths = [end - (first if listed.joins_steps else 0) for first, end in zip(board.start, board.free, strict=True)]
    return _read(_number(max(lengths)))


@cache
def left_over(listed: Schedule, stages: int, microbatches: int) -> list[list[tuple[int, ...]]]:
    """Return F, I and W from the last pass of each virtual stage of every rank to the end of the step."""
    board = _run(listed, stages, microbatches, 0)
    end = _read(_number(max(board.free)))
    return [
        [tuple(end[kind] - _read(_number(board.ended(one)))[kind] for kind in KINDS[:3]) for one in hosted]
        for hosted in listed.hosted(stages)
    ]


def _run(listed: Schedule, stages: int, microbatches: int, ratio: int) -> Board:
    units = [SIZE**place for place in range(len(KINDS))]
    long = SIZE ** len(KINDS)
    forward, inputs, weights = (Long(long * time + unit) for time, unit in zip(RATIOS[ratio], units, strict=False))
    took = StageTimes(forward=forward, backward=inputs + weights, weight=weights)  # type: ignore[arg-type]
    links = {
        (one, other): Long(long + units[3 if abs(one - other) == 1 else 4])
        for one in range(stages)
        for other in range(stages)
        if one != other
    }
    board = Board(
        listed, {one: took for hosted in listed.hosted(stages) for one in hosted}, links, stages, microbatches
    )
    board.run(listed.passes(stages, microbatches))
    return board


def _read(number: int) -> dict[str, int]:
    """Return the counts of a number, which may be negative where numbers were subtracted."""
    found = {}
    for kind in KINDS:
        digit = (number + SIZE // 2) % SIZE - SIZE // 2
        found[kind], number = digit, (number - digit) // SIZE
    return found
