"""Orders of pipelines that run through the ranks from both ends at once, half of the micro-batches from each.

Source: Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines" (2021),
section 3.1: P micro-batches are a unit, and units follow one another as closely as the passes of a rank allow. Inside a
unit a backward pass counts as long as two forward ones, and a unit of P ranks with v chunks takes 3 v P + 2 (P - 2)
forward passes of a chunk, which is the least that there is for 4 and for 8 ranks. How: passes are placed from the end,
each as late as its rank and what follows it allow, and backward ones before forward ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from planner.schedules.base import BACKWARD, FORWARD, Orders, Pass, vee

TIMES = {FORWARD: 1, BACKWARD: 2}
"""Of a pass, against one another."""


def mirrored_orders(num_stages: int, num_microbatches: int, chunks: int) -> Orders:
    """Return the passes of every rank, where each pipeline goes to and fro in `chunks` rounds."""
    unit = _unit(num_stages, chunks)
    busy = sum(TIMES.values()) * num_stages * chunks
    each, half = num_microbatches // 2, num_stages // 2
    orders = []
    for passes in unit:
        timed = sorted(
            (start + busy * number, one._replace(microbatch=one.microbatch + half * number + each * one.direction))
            for number in range(-(-each // half))
            for start, one in passes
            if one.microbatch + half * number < each
        )
        orders.append(tuple(one for _, one in timed))
    return tuple(orders)


def two_ways_blocker(num_stages: int, num_microbatches: int) -> str:
    """Return why pipelines from both ends cannot run a shape; empty if they can."""
    if num_stages % 2:
        return f"needs an even number of stages; {num_stages} have a middle one"
    if num_microbatches % 2:
        return f"needs an even number of micro-batches, half of them from each end; there are {num_microbatches}"
    return ""


def _unit(num_stages: int, chunks: int) -> list[list[tuple[int, Pass]]]:
    """Return (start, pass) of every rank for P micro-batches, half of them in each direction, numbered in each."""
    last = num_stages * chunks - 1
    placed: list[list[tuple[int, Pass]]] = [[] for _ in range(num_stages)]
    free = [0] * num_stages
    possible: list[list[tuple[tuple[int, ...], Pass]]] = [[] for _ in range(num_stages)]
    coming = [(0, Pass(BACKWARD, one, 0, way)) for way in (0, 1) for one in range(num_stages // 2)]
    rank_of = _ranks(num_stages)
    time = 0
    while coming or any(possible):
        while coming and coming[0][0] <= time:
            one = heapq.heappop(coming)[1]
            heapq.heappush(possible[rank_of(one)], (_urgency(one), one))
        for rank in range(num_stages):
            if free[rank] <= time and possible[rank]:
                one = heapq.heappop(possible[rank])[1]
                free[rank] = time + TIMES[one.kind]
                placed[rank].append((-free[rank], one))
                for before in _before(one, last):
                    heapq.heappush(coming, (free[rank], before))
        time += 1
    return placed


def _ranks(num_stages: int) -> Callable[[Pass], int]:
    def rank(one: Pass) -> int:
        there = vee(one.stage, num_stages)
        return num_stages - 1 - there if one.direction else there

    return rank


def _urgency(one: Pass) -> tuple[int, ...]:
    """Return by what passes are chosen, the least first, where time runs backward."""
    if one.kind == BACKWARD:
        return 0, -one.microbatch, -one.stage
    return 1, one.microbatch, one.stage


def _before(one: Pass, last: int) -> list[Pass]:
    """Return the pass whose result another one needs, where there is one."""
    if one.kind == BACKWARD:
        return [one._replace(stage=one.stage + 1) if one.stage < last else one._replace(kind=FORWARD)]
    return [one._replace(stage=one.stage - 1)] if one.stage else []
