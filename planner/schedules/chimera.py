"""Chimera: two pipelines through the same ranks, one from each end, so that each fills what the other idles.

Source: Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines" (2021).
Every rank holds the weights of two stages, whose gradients are exchanged as soon as they are whole.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._both_ways import mirrored_orders, two_ways_blocker
from planner.schedules.base import Orders, Schedule, counted, letters, vee


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    return mirrored_orders(num_stages, num_microbatches, chunks=1)


CHIMERA = Schedule(
    name="chimera",
    summary="two pipelines from both ends: idles half as long as 1f1b, holds two copies of the weights",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    placement=vee,
    directions=2,
    eager_sync=True,
    blocker=two_ways_blocker,
)
