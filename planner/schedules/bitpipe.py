"""BitPipe: Chimera with two chunks a stage in the shape of a V, so that filling and draining are half as long again.

Source: Wu et al., "BitPipe: Bidirectional Interleaved Pipeline Parallelism for Accelerating Large Models Training"
(2024). Where a V turns, a rank hands on to itself. Gradients are exchanged as soon as they are whole.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._both_ways import mirrored_orders, two_ways_blocker
from planner.schedules.base import Orders, Schedule, counted, letters, vee


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    return mirrored_orders(num_stages, num_microbatches, chunks=2)


BITPIPE = Schedule(
    name="bitpipe",
    summary="chimera in Vs of two chunks a stage: idles half as long, sends more, holds two copies of the weights",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    virtual_stages=2,
    placement=vee,
    directions=2,
    eager_sync=True,
    blocker=two_ways_blocker,
)
