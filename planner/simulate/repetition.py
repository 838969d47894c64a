"""Skipping what repeats: a long steady stretch of a pipeline is counted, not run, with the same result."""

from __future__ import annotations

from collections.abc import Sequence

from planner.simulate.rank import Rank, run

WINDOW = 16
"""Passes of every rank between two looks for repetition, where all passes of a rank are alike."""


def run_repeating(ranks: Sequence[Rank], window: int = WINDOW) -> None:
    """Run windows of passes, and skip what repeats; what is left in the end cannot be cut into windows.

    Where passes differ, a `window` must hold whole rounds of them each way, so that the same ones follow every look.

    Starts are maxima of sums, so that if all times that still matter are those of an earlier look plus one constant,
    and the same passes follow, then the same constant is added each time these passes come round. Looks are compared
    as in Brent's cycle detection: with one look that is renewed after 1, 2, 4, ... windows, which finds any period.
    """
    end = len(ranks[0].order)
    position = look_at = renew_at = 0
    look: list[list[float]] = []
    span = window
    while position + window < end and run(ranks, position + window):
        position += window
        shift = _shift(look, ranks)
        if shift is not None:
            position += _skip(ranks, look_at, shift)
            look = []
        if position >= renew_at or not look:
            span = window if not look else 2 * span
            look, look_at, renew_at = _look(ranks), position, position + span


def _look(ranks: Sequence[Rank]) -> list[list[float]]:
    """Return all times [ticks] on which the passes to come depend, by rank."""
    last, ring = len(ranks) - 1, ranks[-1].forward_outbox is ranks[0].forward_inbox
    looks = []
    for stage, rank in enumerate(ranks):
        forward, backward = rank.pending()
        times = [rank.free, max(rank.free, rank.forward_link), max(rank.free, rank.backward_link)]
        looks.append(times + (forward if stage > 0 or ring else []) + (backward if stage < last or ring else []))
    return looks


def _shift(look: list[list[float]], ranks: Sequence[Rank]) -> float | None:
    """Return the constant [ticks] by which all times exceed those of `look`, or None if they do not."""
    if not look:
        return None
    shift = ranks[0].free - look[0][0]
    if any(rank.free - times[0] != shift for rank, times in zip(ranks, look, strict=True)):
        return None
    shifted = [[time + shift for time in times] for times in look]
    return shift if shifted == _look(ranks) else None


def _skip(ranks: Sequence[Rank], look_at: int, shift: float) -> int:
    """Count the repetitions of the passes since `look_at` as run, each taking `shift`; return the passes skipped."""
    period = ranks[0].position - look_at
    repetitions = min(_common_prefix(rank.order, look_at, rank.position) for rank in ranks) // period
    for rank in ranks:
        rank.position += repetitions * period
        later = repetitions * shift
        rank.free += later
        rank.forward_link += later
        rank.backward_link += later
        for inbox, used in ((rank.forward_inbox, rank.num_forward), (rank.backward_inbox, rank.num_backward)):
            inbox[used:] = [arrival + later for arrival in inbox[used:]]
    return repetitions * period


def _common_prefix(order: str, first: int, second: int) -> int:
    """Return for how many passes `order` reads the same from `first` and from `second` on, the later of the two."""
    same, different = 0, len(order) - second + 1
    while different - same > 1:
        middle = (same + different) // 2
        if order.startswith(order[first : first + middle], second):
            same = middle
        else:
            different = middle
    return same
