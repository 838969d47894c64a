"""Orders that repeat a building block: what a V of two chunks does for one micro-batch, every six passes anew.

Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (2024), sections 3 and 4. How far apart the passes of
a block lie on neighbouring ranks decides how long activations live, and so how many are held. All passes count as
long; two passes of a rank never fall on the same slot of six, and gradients of weights take the slots between.
"""

from __future__ import annotations

from collections import deque
from itertools import product

from planner.schedules.base import FORWARD, INPUT, WEIGHT, Orders, Pass

PERIOD = 6
"""Passes of a rank for one micro-batch: F, I and W of two chunks."""


def block_orders(num_stages: int, num_microbatches: int, away: int, home: int) -> Orders:
    """Return the passes of every rank.

    Args:
        num_stages: ranks.
        num_microbatches: of the step.
        away: slots between a rank and the next, on the way from the first chunks to the second ones.
        home: the same on the way back.

    """
    gaps = _gaps(num_stages, away, home)
    orders = []
    for rank in range(num_stages):
        far = 2 * num_stages - 1 - rank
        rows = zip((FORWARD, FORWARD, INPUT, INPUT), (rank, far, far, rank), strict=True)
        slots = _starts(rank, num_stages, away, home, gaps)
        timed = sorted(
            (slot + PERIOD * microbatch, Pass(kind, microbatch, stage))
            for (kind, stage), slot in zip(rows, slots, strict=True)
            for microbatch in range(num_microbatches)
        )
        orders.append(_filled(timed))
    return tuple(orders)


def _starts(rank: int, num_stages: int, away: int, home: int, gaps: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the slots of one micro-batch: forward through both chunks, then backward through the second and the first.

    `gaps` are the slots from the last pass of each way to the first of the next, which the same rank runs.
    """
    last = num_stages - 1
    turn = away * last + gaps[0]
    back = turn + home * last + gaps[1]
    final = back + away * last + gaps[2]
    return away * rank, turn + home * (last - rank), back + away * rank, final + home * (last - rank)


def _gaps(num_stages: int, away: int, home: int) -> tuple[int, ...]:
    """Return the shortest gaps with which no two passes of any rank fall on the same slot."""

    def clash(gaps: tuple[int, ...]) -> bool:
        starts = (_starts(rank, num_stages, away, home, gaps) for rank in range(num_stages))
        return any(len({slot % PERIOD for slot in slots}) < len(slots) for slots in starts)

    possible = sorted(product(range(1, PERIOD + 1), repeat=3), key=lambda gaps: (sum(gaps), gaps))
    return next(gaps for gaps in possible if not clash(gaps))


def _filled(timed: list[tuple[int, Pass]]) -> tuple[Pass, ...]:
    """Return passes in the order of their slots, with gradients of weights in the slots between them."""
    made: list[Pass] = []
    waiting: deque[Pass] = deque()
    before = -1
    for slot, one in timed:
        made += [waiting.popleft() for _ in range(min(len(waiting), slot - before - 1))]
        made.append(one)
        if one.kind == INPUT:
            waiting.append(Pass(WEIGHT, one.microbatch, one.stage))
        before = slot
    return (*made, *waiting)
