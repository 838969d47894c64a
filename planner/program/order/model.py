"""The integer program of an order: when every pass begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from planner.program.order.bound import least_step
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
    """Let no rank hold more than it has room for: sum of n_s from the beginning of F to the end of W.

    With one chunk, of which k find room, that is start(F, m + k) >= end(W, m).
    """
    shop = made.shop
    for rank, room in enumerate(shop.room):
        own = shop.hosted(rank)
        if sum(shop.sizes[stage] for stage in own) * shop.num_microbatches <= room:
            continue
        held = [one for one in made.starts if one.kind == FORWARD and one.stage in own]
        if len(own) == 1:
            most = room // shop.sizes[own[0]]
            for one in held[most:]:
                freed = one._replace(kind=WEIGHT, microbatch=one.microbatch - most)
                made.model.add(made.starts[one] >= made.end(freed))
            continue
        intervals = []
        for one in held:
            length = made.model.new_int_var(0, made.horizon, "")
            intervals.append(
                made.model.new_interval_var(made.starts[one], length, made.end(one._replace(kind=WEIGHT)), "")
            )
        made.model.add_cumulative(intervals, [shop.sizes[one.stage] for one in held], room)


def _step_ends(made: OrderModel) -> None:
    """Let the step end after the last pass of every stage, and the exchange of its rank."""
    shop = made.shop
    for one in made.starts:
        if one.kind == WEIGHT and one.microbatch == shop.num_microbatches - 1:
            made.model.add(made.step >= made.end(one) + shop.sync[shop.ranks[one.stage]])
