"""Breadth-first: every micro-batch passes a chunk before any passes the next one, so that a chunk is gathered once.

Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism" (2022), section 4. The passes of a chunk go backward in the
order in which they went forward.
"""

from __future__ import annotations

from functools import cache, lru_cache

from planner.schedules.base import BACKWARD, FORWARD, Orders, Pass, Schedule, counted, letters


@cache
def _breadth_first(chunks: int) -> Schedule:
    """Return the schedule with `chunks` chunks of layers a stage."""

    @lru_cache(maxsize=2)
    def orders(num_stages: int, num_microbatches: int) -> Orders:
        return tuple(
            tuple(
                Pass(kind, microbatch, chunk * num_stages + rank)
                for kind, way in ((FORWARD, range(chunks)), (BACKWARD, range(chunks)[::-1]))
                for chunk in way
                for microbatch in range(num_microbatches)
            )
            for rank in range(num_stages)
        )

    return Schedule(
        name="breadth-first",
        summary="all micro-batches through one chunk after the other: gathers each chunk once, holds every activation",
        in_flight=counted(orders),
        order=letters(orders),
        orders=orders,
        changes_semantics=False,
        lanes=(("forward",), ("backward",)),
        virtual_stages=chunks,
        gathers_once=True,
        runs_as=(("torchtitan", "LoopedBFS"),),
        with_chunks=_breadth_first,
    )


BREADTH_FIRST = _breadth_first(2)
