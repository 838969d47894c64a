"""Every layer of the model runs exactly once, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.checks.base import Check, Context, places
from planner.domain.plan import SEARCHED, Plan
from planner.errors import Problem
from planner.schedules import SCHEDULES, found_placement, loop


def _check(context: Context) -> tuple[Problem, ...]:
    last = context.model.num_layers - 1
    return tuple(
        problem for prefix, pipeline in context.pipelines() for problem in _own_problems(prefix, pipeline, last)
    )


def _own_problems(prefix: str, plan: Plan, last: int) -> list[Problem]:
    """Return what is wrong with the layers of one kind of pipeline, of which `last` must be the last."""
    if not plan.stages:
        return [Problem(f"{prefix}stages", f"there is no stage; one or more must run layers 0 to {last}")]
    wanted = plan.virtual_stages
    problems = [
        Problem(f"{place}.chunks", f"are {len(stage.chunks)}; must be {wanted}, the virtual stages of the plan")
        for place, stage in places(plan, prefix)
        if len(stage.chunks) != wanted
    ]
    following, final = 0, ""
    for first_place, first, last_place, end in () if problems else _runs(plan, prefix):
        if first != following:
            trouble = "leaves out" if first > following else "repeats"
            problems.append(Problem(first_place, f"is {first}, which {trouble} layers; must be {following}"))
        if end < first:
            problems.append(Problem(last_place, f"is {end}; must be at least first_layer, which is {first}"))
        following, final = end + 1, last_place
    if final and following != last + 1:
        message = f"is {following - 1}; must be {last}, the last of the model's {last + 1} layers"
        problems.append(Problem(final, message))
    return problems


def _placement(plan: Plan) -> Callable[[int, int], int]:
    """Return where a plan's schedule puts virtual stages; loops where there is no such schedule."""
    if plan.schedule == SEARCHED:
        return found_placement(plan.order, plan.virtual_stages)
    return {listed.name: listed.placement for listed in SCHEDULES}.get(plan.schedule, loop)


def _runs(plan: Plan, prefix: str) -> Iterator[tuple[str, int, str, int]]:
    """Yield the place and the layer of both ends of every run of layers, in the order in which they follow one another.

    The first chunks of all stages come first, then all second ones, and so on; every other time from the last stage to
    the first where the schedule goes to and fro.
    """
    placement = _placement(plan)
    held = list(places(plan, prefix))
    for number in range(plan.virtual_stages * plan.num_stages):
        chunk = number // plan.num_stages
        place, stage = held[placement(number, plan.num_stages)]
        first, last = stage.chunks[chunk]
        if chunk:
            yield f"{place}.chunks[{chunk}]", first, f"{place}.chunks[{chunk}]", last
        else:
            yield f"{place}.first_layer", first, f"{place}.last_layer", last


LAYERS = Check(
    code="PL101",
    name="layers",
    summary="every layer runs exactly once, in order",
    why="A layer that runs twice or never trains another model than the one that was meant.",
    check=_check,
)
