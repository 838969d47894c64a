"""PipeDream-2BW: 1F1B that never drains, on two versions of the weights; gradients are of weights one step old.

Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (2021), section 3.1 (double-buffered weight
updates). A micro-batch goes back on the version of the weights that it went forward on.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._loops import turns, whole_order
from planner.schedules.base import Orders, Schedule, counted, letters


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    there = turns(1, num_microbatches, num_microbatches)
    return tuple(
        whole_order(there, rank, num_stages, min(num_microbatches, num_stages - 1 - rank)) for rank in range(num_stages)
    )


def _blocker(num_stages: int, num_microbatches: int) -> str:
    if num_microbatches < num_stages:
        return f"needs {num_stages} micro-batches or more, one a stage; there are {num_microbatches}"
    return ""


PIPEDREAM_2BW = Schedule(
    name="pipedream-2bw",
    summary="1f1b that never drains: nothing idles, two versions of the weights, gradients of weights one step old",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=True,
    searched=False,
    flushes=False,
    weight_versions=2,
    staleness=1,
    blocker=_blocker,
)
