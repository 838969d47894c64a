"""DualPipe: micro-batches enter at both ends, so that passes forward and backward meet in pairs all the time.

Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.2.1, and github.com/deepseek-ai/DualPipe (2025).
Every rank holds the weights of two stages. A pair takes as long as both of its passes: that they hide each other's
all-to-all is not counted.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._dual import dual_passes
from planner.schedules.base import Orders, Pass, Schedule, counted, letters


def _blocker(num_stages: int, num_microbatches: int) -> str:
    if num_stages % 2:
        return f"needs an even number of stages; {num_stages} have a middle one"
    if num_microbatches % 2 or num_microbatches < 2 * num_stages:
        return f"needs an even number of micro-batches, {2 * num_stages} or more; {num_microbatches} do not do"
    return ""


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    half, each = num_stages // 2, num_microbatches // 2
    orders = []
    for rank in range(num_stages):
        far = rank >= half  # phase 0 begins at the nearer end, which is the last rank there
        orders.append(
            tuple(
                Pass(
                    kind,
                    number + each * (phase ^ far),
                    (num_stages - 1 - rank) if phase ^ far else rank,
                    phase ^ far,
                    paired,
                )
                for kind, phase, number, paired in dual_passes(min(rank, num_stages - 1 - rank), half, each)
            )
        )
    return tuple(orders)


DUALPIPE = Schedule(
    name="dualpipe",
    summary="from both ends at once, forward and backward in pairs: idles little, holds two copies of the weights",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    directions=2,
    eager_sync=True,
    blocker=_blocker,
)
