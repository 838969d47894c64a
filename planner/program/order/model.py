"""The integer program of an order: when every pass begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from planner.program.order.bound import least_step
from planner.program.order.room import keep_to_room
from planner.program.order.shop import Shop
from planner.program.solver import Linear
from planner.schedules import FORWARD, INPUT, WEIGHT, Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderModel:
    """The program and its variables [ns]."""

    model: cp_model.CpModel
    shop: Shop
    starts: Mapping[Pass, Linear]
    step: Linear
    horizon: int

    def end(self, one: Pass) -> Linear:
        """Return the end of a pass."""
        return self.starts[one] + self.shop.time(one.kind, one.stage)


def build(shop: Shop, horizon: int) -> OrderModel:
    """Return the program: min T under all constraints, where a step up to `horizon` [ns] is known to be possible."""
    model = cp_model.CpModel()
    starts = {one: model.new_int_var(0, horizon, str(one)) for one in shop.passes()}
    step = model.new_int_var(least_step(shop), horizon, "step")
    made = OrderModel(model=model, shop=shop, starts=starts, step=step, horizon=horizon)
    for constraint in (_one_at_a_time, _in_order, _inputs_arrive, _room, _step_ends):
        constraint(made)
    model.minimize(step)
    return made


def _one_at_a_time(made: OrderModel) -> None:
    """Let the intervals of the passes of a rank not overlap."""
    shop = made.shop
    for rank in range(shop.num_ranks):
        own = [one for one in made.starts if shop.ranks[one.stage] == rank]
        intervals = [
            made.model.new_fixed_size_interval_var(made.starts[one], shop.time(one.kind, one.stage), "") for one in own
        ]
        made.model.add_no_overlap(intervals)


def _in_order(made: OrderModel) -> None:
    """Let micro-batches pass in their order: start(k, m + 1, s) >= end(k, m, s). They are alike, so nothing is lost."""
    for one in made.starts:
        following = one._replace(microbatch=one.microbatch + 1)
        if following in made.starts:
            made.model.add(made.starts[following] >= made.end(one))


def _inputs_arrive(made: OrderModel) -> None:
    """Let each pass begin when its input is there; a link takes one transfer at a time."""
    shop, last = made.shop, len(made.shop.ranks) - 1
    arrivals = _arrivals(made)
    for one, start in made.starts.items():
        stage = one.stage
        if one.kind == WEIGHT:
            made.model.add(start >= made.end(one._replace(kind=INPUT)))
        elif one.kind == INPUT and stage == last:
            made.model.add(start >= made.end(one._replace(kind=FORWARD)))
        elif (one.kind, stage) != (FORWARD, 0):
            before = one._replace(stage=stage - 1 if one.kind == FORWARD else stage + 1)
            here = shop.ranks[before.stage] == shop.ranks[stage]
            made.model.add(start >= (made.end(before) if here else arrivals[before]))


def _arrivals(made: OrderModel) -> dict[Pass, Linear]:
    """Return when the results of passes arrive, of those that are sent.

    Where a transfer takes no longer than any pass that sends over its link, the link is always free in time. Else a
    transfer begins when the last one of its kind has arrived, and different kinds take turns: the replay has them first
    come, first served, so that its step can be longer, and the bound holds all the same.
    """
    shop, found = made.shop, {}
    for link, kinds in shop.senders().items():
        hop = shop.hops[link]
        sent = [one for one in made.starts if (one.kind, one.stage) in kinds]
        if hop <= min(shop.time(*kind) for kind in kinds):
            found.update({one: made.end(one) + hop for one in sent})
            continue
        transfers = []
        for one in sent:
            begun = made.model.new_int_var(0, made.horizon, "")
            made.model.add(begun >= made.end(one))
            transfers.append(made.model.new_fixed_size_interval_var(begun, hop, ""))
            found[one] = begun + hop
        for one, following in pairwise(sent):
            if one[::2] == following[::2]:
                made.model.add(found[following] >= found[one] + hop)
        made.model.add_no_overlap(transfers)
    return found


def _room(made: OrderModel) -> None:
    """Let no rank hold more than it has room for, by literals that say which of two passes comes first."""
    literals: dict[tuple[Pass, Pass], Linear] = {}

    def before(one: Pass, other: Pass) -> Linear:
        if (other, one) in literals:
            return ~literals[other, one]
        if (one, other) not in literals:
            literal = literals[one, other] = made.model.new_bool_var("")
            made.model.add(made.starts[other] >= made.end(one)).only_enforce_if(literal)
            made.model.add(made.starts[one] >= made.end(other)).only_enforce_if(~literal)
        return literals[one, other]

    keep_to_room(made.model, made.shop, before)


def _step_ends(made: OrderModel) -> None:
    """Let the step end after the last pass of every stage, and the exchange of its rank."""
    shop = made.shop
    for one in made.starts:
        if one.kind == WEIGHT and one.microbatch == shop.num_microbatches - 1:
            made.model.add(made.step >= made.end(one) + shop.sync[shop.ranks[one.stage]])
