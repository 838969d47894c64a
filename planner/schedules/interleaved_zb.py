"""Interleaved 1F1B with the backward pass in two parts (ZB1P of several chunks).

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 2.1, in loops as PyTorch's
`ScheduleInterleavedZeroBubble` (torch/distributed/pipelining/schedules.py, 2.13) runs it.
"""

from __future__ import annotations

from functools import cache, lru_cache

from planner.schedules._loops import split_order, turns, whole_groups
from planner.schedules.base import Orders, Schedule, counted, letters


@cache
def _interleaved(chunks: int) -> Schedule:
    """Return the schedule with `chunks` chunks of layers a stage."""

    @lru_cache(maxsize=2)
    def orders(num_stages: int, num_microbatches: int) -> Orders:
        there = turns(chunks, num_microbatches, num_stages)
        ahead = (chunks - 1) * num_stages + num_stages - 1
        return tuple(split_order(there, rank, num_stages, ahead - rank, rank) for rank in range(num_stages))

    return Schedule(
        name="interleaved-zb",
        summary="interleaved with gradients of weights put off: idles a third as long, P micro-batches on each rank",
        in_flight=counted(orders),
        order=letters(orders),
        orders=orders,
        changes_semantics=False,
        virtual_stages=chunks,
        runs_as=(("torchtitan", "InterleavedZeroBubble"),),
        blocker=whole_groups,
        with_chunks=_interleaved,
    )


INTERLEAVED_ZB = _interleaved(2)
