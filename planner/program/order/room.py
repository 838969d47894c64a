"""No rank holds more than it has room for: from the beginning of F to the end of W, n_s layers of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ortools.sat.python import cp_model

from planner.program.order.shop import Shop
from planner.program.solver import Linear, weighted
from planner.schedules import FORWARD, WEIGHT, Pass

MOST_IN_CLAUSES = 24
"""Micro-batches up to which the room of two chunks is told in clauses, which are M^3 / 2 for each chunk."""
Before = Callable[[Pass, Pass], Linear]
"""(a, b) -> the literal that says that a has ended when b begins, both on the same rank; else b has when a begins."""


def keep_to_room(model: cp_model.CpModel, shop: Shop, before: Before) -> None:
    """Add the constraints of all ranks. What is held changes for the worse at beginnings of F only."""
    for rank, room in enumerate(shop.room):
        own = shop.hosted(rank)
        if sum(shop.sizes[stage] for stage in own) * shop.num_microbatches <= room:
            continue
        for stage in own:
            _alone(model, shop, stage, room, before)
        if len(own) == 2 and shop.num_microbatches <= MOST_IN_CLAUSES:
            for one, other in (own, own[::-1]):
                _two(model, shop, one, other, room, before)
        elif len(own) > 1:
            _several(model, shop, own, room, before)


def _alone(model: cp_model.CpModel, shop: Shop, stage: int, room: int, before: Before) -> None:
    """Let at most q = R / n_s micro-batches of a stage be held: W(s, m) ends before F(s, m + q)."""
    most = room // shop.sizes[stage]
    for number in range(most, shop.num_microbatches):
        model.add(before(Pass(WEIGHT, number - most, stage), Pass(FORWARD, number, stage)) == 1)


def _two(model: cp_model.CpModel, shop: Shop, one: int, other: int, room: int, before: Before) -> None:
    """Let F(a, i) begin in room: if j + 1 forward passes of b came before and only y of its W, enough W of a did too.

    With x the least number for which n_a (i + 1 - x) + n_b (j + 1 - y) <= R, W(a, x - 1) must have ended.
    """
    size, beside = shop.sizes[one], shop.sizes[other]
    for number in range(shop.num_microbatches):
        begun = Pass(FORWARD, number, one)
        for came in range(shop.num_microbatches):
            for gone in range(came + 1):
                needed = -(-(size * (number + 1) + beside * (came + 1 - gone) - room) // size)
                if needed > 0:
                    either = [~before(Pass(FORWARD, came, other), begun), before(Pass(WEIGHT, gone, other), begun)]
                    if needed <= number:
                        either.append(before(Pass(WEIGHT, needed - 1, one), begun))
                    model.add_bool_or(either)


def _several(model: cp_model.CpModel, shop: Shop, own: Sequence[int], room: int, before: Before) -> None:
    """Let each F(a, i) begin in room: n_a (i + 1) + sum_b n_b (F of b before it) - sum_s n_s (W of s before) <= R."""
    for one in own:
        for number in range(shop.num_microbatches):
            begun, size = Pass(FORWARD, number, one), shop.sizes[one]
            terms = [(-size, before(Pass(WEIGHT, gone, one), begun)) for gone in range(number)]
            for other in own:
                if other != one:
                    for kind, sign in ((FORWARD, 1), (WEIGHT, -1)):
                        runs = (Pass(kind, came, other) for came in range(shop.num_microbatches))
                        terms += [(sign * shop.sizes[other], before(run, begun)) for run in runs]
            model.add(weighted(terms) <= room - size * (number + 1))
