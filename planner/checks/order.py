"""An order of passes that a plan brings along: each pass once, on its rank, and none waits for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from planner.checks.base import Check, Context
from planner.domain.plan import SEARCHED, Plan
from planner.errors import Problem
from planner.schedules import (
    BACKWARD,
    FORWARD,
    INPUT,
    WEIGHT,
    Orders,
    Pass,
    cell,
    found_placement,
    read_rows,
)

SHOWN = 4
"""Passes that a message names before it counts the rest."""


def _check(context: Context) -> tuple[Problem, ...]:
    return tuple(
        Problem(f"{prefix}{key}", message)
        for prefix, pipeline in context.pipelines()
        for key, message in _own_problems(pipeline)
    )


def _own_problems(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield key and trouble of one kind of pipeline."""
    if plan.schedule != SEARCHED:
        if plan.order:
            yield "order", f"is given, and schedule {plan.schedule} has its own; leave it out, or write {SEARCHED}"
        return
    if len(plan.order) != len(plan.stages):
        wanted = f"must be {len(plan.stages)}, the passes of each stage"
        yield "order", f"has {len(plan.order)} rows; {wanted}"
        return
    if plan.virtual_stages < 1 or plan.num_microbatches < 1:
        return  # others say so
    try:
        orders = read_rows(plan.order)
    except ValueError as error:
        yield "order", f"cannot be read: {error}"
        return
    problems = [
        (f"order[{rank}]", text) for rank, passes in enumerate(orders) for text in _row_problems(plan, rank, passes)
    ]
    yield from problems
    if not problems and (stuck := _stuck(plan, orders)):
        yield "order", f"never ends: {'; '.join(stuck)}; let each of them come later in its row"


def _row_problems(plan: Plan, rank: int, passes: Sequence[Pass]) -> Iterator[str]:
    """Yield what is wrong with the passes of a rank, whatever the others run."""
    placement, stages = found_placement(plan.order, plan.virtual_stages), plan.num_stages * plan.virtual_stages
    own = [stage for stage in range(stages) if placement(stage, plan.num_stages) == rank]
    met = Counter(passes)
    foreign = [one for one in met if one.stage not in own or one.microbatch >= plan.num_microbatches]
    if foreign:
        holds = f"stage {rank} runs virtual stages {', '.join(map(str, own))} on micro-batches 0 to"
        yield f"has {_named(foreign)}; {holds} {plan.num_microbatches - 1}"
    if several := [one for one, number in met.items() if number > 1]:
        yield f"has {_named(several)} more than once; keep one of each"
    if missing := list(_missing(plan, own, met)):
        yield f"lacks {_named(missing)}; every micro-batch needs F, and either B or both I and W"
    if both := [one for one in met if one.kind == BACKWARD and _halves(one) & set(met)]:
        yield f"has {_named(both)} and a part of the same; keep either B or both I and W"
    if early := list(_early(passes)):
        yield f"has {_named(early)} too early; F comes before B and I, and I before W"


def _halves(one: Pass) -> set[Pass]:
    return {one._replace(kind=kind) for kind in (INPUT, WEIGHT)}


def _missing(plan: Plan, own: Sequence[int], met: Counter[Pass]) -> Iterator[Pass]:
    for stage in own:
        for microbatch in range(plan.num_microbatches):
            forward, whole = (Pass(kind, microbatch, stage) for kind in (FORWARD, BACKWARD))
            if forward not in met:
                yield forward
            halves = _halves(whole) & set(met)
            if whole not in met and not halves:
                yield whole
            elif len(halves) == 1:
                yield from _halves(whole) - halves


def _early(passes: Sequence[Pass]) -> Iterator[Pass]:
    """Yield passes of a rank before which it should have run another one."""
    done: set[Pass] = set()
    for one in passes:
        done.add(one)
        needs = {BACKWARD: FORWARD, INPUT: FORWARD, WEIGHT: INPUT}.get(one.kind)
        if needs and one._replace(kind=needs) not in done:
            yield one


def _stuck(plan: Plan, orders: Orders) -> list[str]:
    """Return what ranks wait for that wait for one another; empty if all passes can run."""
    last = plan.num_stages * plan.virtual_stages - 1
    position, arrived, moved = [0] * len(orders), set[tuple[str, int, int]](), True
    while moved:
        moved = False
        for rank, passes in enumerate(orders):
            while position[rank] < len(passes) and _ready(passes[position[rank]], last, arrived):
                one = passes[position[rank]]
                if one.kind != WEIGHT:
                    way, step = (FORWARD, 1) if one.kind == FORWARD else (INPUT, -1)
                    arrived.add((way, one.stage + step, one.microbatch))
                position[rank] += 1
                moved = True
    return [
        f"stage {rank} waits for the input of {cell(passes[at])}"
        for rank, (at, passes) in enumerate(zip(position, orders, strict=True))
        if at < len(passes)
    ]


def _ready(one: Pass, last: int, arrived: set[tuple[str, int, int]]) -> bool:
    way = FORWARD if one.kind == FORWARD else INPUT
    at_end = one.stage == (0 if way == FORWARD else last)
    return one.kind == WEIGHT or at_end or (way, one.stage, one.microbatch) in arrived


def _named(passes: Sequence[Pass]) -> str:
    """Return passes as cells, the first few of many."""
    shown = ", ".join(cell(one) for one in passes[:SHOWN])
    return f"{shown} and {len(passes) - SHOWN} more" if len(passes) > SHOWN else shown


ORDER = Check(
    code="PL111",
    name="order",
    summary="an order of passes that a plan has of its own runs each pass once, on its rank, and ends",
    why="Ranks that wait for one another hang until the communicator gives up; a pass that is missing trains nothing.",
    check=_check,
)
