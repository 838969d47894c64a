"""ZB-H2: ZB-H1 with a longer warm-up, after which no rank idles between its first pass and its last.

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), sections 2.2 (handcrafted schedule 2) and 4 (the check of
gradients after the update, without which ranks would wait for one another at the end of a step).
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._loops import split_order, turns
from planner.schedules.base import Orders, Schedule, counted, letters


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    there = turns(1, num_microbatches, num_microbatches)
    return tuple(
        split_order(there, rank, num_stages, min(num_microbatches, 2 * (num_stages - 1 - rank)), 2 * rank)
        for rank in range(num_stages)
    )


ZB_H2 = Schedule(
    name="zb-h2",
    summary="zb-h1 with twice the warm-up: never idles where passes take alike, holds almost twice the activations",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    joins_steps=True,
)
