"""ZB-H1: 1F1B with the backward pass in two parts, of which the gradients of weights fill what would be idle.

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 2.1 (handcrafted schedule 1). Rank r puts every W
off by r backward passes, so that all ranks hold what the first one holds in 1F1B.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._loops import split_order, turns
from planner.schedules.base import Orders, Schedule, counted, letters


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    there = turns(1, num_microbatches, num_microbatches)
    return tuple(
        split_order(there, rank, num_stages, min(num_microbatches, num_stages - 1 - rank), rank)
        for rank in range(num_stages)
    )


ZB_H1 = Schedule(
    name="zb-h1",
    summary="1f1b with gradients of weights put off: idles a third as long, every rank holds what the first one did",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
)
