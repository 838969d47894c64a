"""V-Half: two chunks a rank in the shape of a V, with a half of the activations that 1F1B holds.

Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (2024), section 4. Passes that could be drawn
together at the start and the end of a step, as in the authors' programs, keep the order of the building block.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._blocks import block_orders
from planner.schedules.base import Orders, Schedule, counted, letters, vee


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    return block_orders(num_stages, num_microbatches, away=2, home=1)


V_HALF = Schedule(
    name="v-half",
    summary="two chunks a rank in a V: holds half of what 1f1b holds on its first rank, idles more than zbv",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    virtual_stages=2,
    placement=vee,
)
