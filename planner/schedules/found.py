"""An order of passes that was found for the stages of one plan, or written by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from planner.domain.plan import SEARCHED
from planner.schedules.base import Orders, Schedule, counted, letters, loop, vee
from planner.schedules.cells import read_rows


def found_placement(order: tuple[str, ...], virtual_stages: int) -> Callable[[int, int], int]:
    """Return where the virtual stages of an order lie: in a V where the first rank has the last one, else in a loop."""
    last = len(order) * virtual_stages - 1
    return vee if virtual_stages > 1 and order and f"{last}F0" in order[0].split(",") else loop


@lru_cache(maxsize=8)
def found_schedule(order: tuple[str, ...], virtual_stages: int) -> Schedule:
    """Return the schedule whose ranks run the passes of `order`, a row each, whatever it is asked to run.

    Raises:
        ValueError: something in a row is no pass.

    """
    orders = read_rows(order)

    def given(_num_stages: int, _num_microbatches: int) -> Orders:
        return orders

    return Schedule(
        name=SEARCHED,
        summary="passes in an order that was found for the stages of the plan",
        in_flight=counted(given),
        order=letters(given),
        orders=given,
        changes_semantics=False,
        searched=False,
        virtual_stages=virtual_stages,
        placement=found_placement(order, virtual_stages),
    )
