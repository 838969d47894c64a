"""Where the chunks of a plan's stages may lie, and the job shop of the passes that each placement has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from planner.costs import PlanCost, plan_cost
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import SEARCHED, Plan, Stage
from planner.domain.prediction import FORWARD_BACKWARD
from planner.schedules import SCHEDULES, Orders, Schedule, loop, rows, vee
from planner.units import NANOSECOND

if TYPE_CHECKING:
    from planner.program.order import Shop

ROUNDING = 1e-12
"""[-] by which floats may make a limit look larger than it is."""
Placement = Callable[[int, int], int]
"""(virtual stage, number of stages) -> its stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A placement of chunks: the plan with any order, what it costs, and its job shop."""

    plan: Plan
    costs: PlanCost
    shop: Shop
    known: tuple[Orders, ...]
    """Those of the named schedules with the same placement."""


def trials_of(base: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> Iterator[Trial]:
    """Yield the placements whose weights, and one micro-batch at least, find room."""
    from planner.candidates.choices import allows

    for chunks, placement in dict.fromkeys(((1, loop), (2, loop), (2, vee), (base.virtual_stages, loop))):
        if not allows(job.constraints, "vpp", chunks) or min(s.num_layers for s in base.stages) < chunks:
            continue
        known = tuple(_named(base.num_stages, base.num_microbatches, chunks, placement))
        plan = replace(
            base,
            stages=_in_chunks(base, chunks, placement),
            schedule=SEARCHED,
            virtual_stages=chunks,
            microbatch_group=0,
            order=rows(known[0]),
        )
        costs = plan_cost(plan, cluster, model, job, framework)
        shop = _shop(plan, costs, placement, cluster, job)
        if shop is not None:
            yield Trial(plan=plan, costs=costs, shop=shop, known=known)


def is_comparable(listed: Schedule) -> bool:
    """Tell whether a found order is at least as good: a step ends before the next, and weights are held once."""
    return listed.flushes and not listed.joins_steps and listed.directions == 1


def _named(num_stages: int, number: int, chunks: int, placement: Placement) -> Iterator[Orders]:
    """Yield the orders of schedules that lay the stages out like this, and end a step before they begin the next."""
    for listed in SCHEDULES:
        own = listed.with_chunks(chunks) if listed.with_chunks and chunks > 1 else listed
        if own.virtual_stages != chunks or not is_comparable(own) or own.blocker(num_stages, number):
            continue
        if all(own.rank(s, 0, num_stages) == placement(s, num_stages) for s in range(num_stages * chunks)):
            yield own.passes(num_stages, number)


def _in_chunks(base: Plan, chunks: int, placement: Placement) -> tuple[Stage, ...]:
    """Return the stages with their layers in so many chunks, as evenly as they go."""
    count = base.num_stages
    sizes = [base.stages[placement(number, count)].num_layers for number in range(chunks * count)]
    cut = [sizes[number] // chunks + (number // count < sizes[number] % chunks) for number in range(chunks * count)]
    ends = list(accumulate(cut))
    runs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (end, size) in enumerate(zip(ends, cut, strict=True)):
        runs[placement(number, count)].append((end - size, end - 1))
    return tuple(
        replace(stage, first_layer=first[0], last_layer=first[1], later_chunks=tuple(later))
        for stage, (first, *later) in zip(base.stages, runs, strict=True)
    )


def _shop(plan: Plan, costs: PlanCost, placement: Placement, cluster: Cluster, job: Job) -> Shop | None:
    """Return the job shop of a plan, times rounded down; None where even one micro-batch finds no room."""
    from planner.program.order import Shop

    count = plan.num_stages
    ranks = tuple(placement(number, count) for number in range(count * plan.virtual_stages))
    hosted = {one.stage: one for stage in costs.stages for one in stage.hosted}
    room = []
    for stage, cost in zip(plan.stages, costs.stages, strict=True):
        limit = cluster.group(stage.group).device.memory * (1 - job.headroom)
        levels = cost.levels
        left = limit - levels.resident - levels.working
        layers = left / levels.held * stage.num_layers if levels.held else stage.num_layers * plan.num_microbatches
        most = stage.num_layers * plan.num_microbatches
        other = max(size for name, size in cost.peaks if name != FORWARD_BACKWARD)
        if other > limit or layers < stage.num_layers:
            return None
        room.append(int(min(layers * (1 - ROUNDING), most)))
    return Shop(
        num_microbatches=plan.num_microbatches,
        ranks=ranks,
        times=tuple(
            (_ns(one.forward), _ns(one.backward - one.weight), _ns(one.weight))
            for one in (hosted[number] for number in range(len(ranks)))
        ),
        hops={pair: _ns(seconds) for pair, seconds in costs.links.items()},
        sync=tuple(_ns(cost.sync) for cost in costs.stages),
        sizes=tuple(plan.stages[rank].chunk_sizes[number // count] for number, rank in enumerate(ranks)),
        room=tuple(room),
    )


def _ns(seconds: float) -> int:
    return int(seconds / NANOSECOND)
