"""An order of passes that was found for the stages of one plan, or written by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from planner.domain.plan import SEARCHED
from planner.schedules.base import Orders, Schedule, counted, letters, loop, vee


def found_placement(order: tuple[str, ...], virtual_stages: int) -> Callable[[int, int], int]:
    """Return where the virtual stages of an order lie: in a V where the first rank has the last one, else in a loop."""
    last = len(order) * virtual_stages - 1
    return vee if virtual_stages > 1 and order and f"{last}F0" in order[0].split(",") else loop


@lru_cache(maxsize=8)
def found_schedule(orders: Orders, virtual_stages: int, placement: Callable[[int, int], int]) -> Schedule:
    """Return the schedule whose ranks run `orders`, whatever number of stages and micro-batches it is asked for."""

    def given(_num_stages: int, _num_microbatches: int) -> Orders:
        return orders

    return Schedule(
        name=SEARCHED,
        summary="passes in an order that was found for the stages of the plan",
        in_flight=counted(given),
        order=letters(given),
        orders=given,
        changes_semantics=False,
        virtual_stages=virtual_stages,
        placement=placement,
    )


ANY_ORDER = Schedule(
    name=SEARCHED,
    summary="the best order of the passes of one plan's stages, which planner plan --schedule search looks for",
    in_flight=counted(lambda *_shape: ()),
    order=letters(lambda *_shape: ()),
    orders=lambda *_shape: (),
    changes_semantics=False,
    with_chunks=lambda chunks: found_schedule((), chunks, loop),
)
"""What is said of all of them where schedules are listed; it has no passes of its own."""
