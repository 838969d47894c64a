"""Every layer of the model runs exactly once, in order."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    last = context.model.num_layers - 1
    if not context.plan.stages:
        return (Problem("stages", f"there is no stage; one or more must run layers 0 to {last}"),)
    problems = []
    following = 0
    for place, stage in context.places():
        if stage.first_layer != following:
            trouble = "leaves out" if stage.first_layer > following else "repeats"
            message = f"is {stage.first_layer}, which {trouble} layers; must be {following}"
            problems.append(Problem(f"{place}.first_layer", message))
        if stage.last_layer < stage.first_layer:
            message = f"is {stage.last_layer}; must be at least first_layer, which is {stage.first_layer}"
            problems.append(Problem(f"{place}.last_layer", message))
        following = stage.last_layer + 1
    if following != last + 1:
        message = f"is {following - 1}; must be {last}, the last of the model's {last + 1} layers"
        problems.append(Problem(f"stages[{len(context.plan.stages) - 1}].last_layer", message))
    return tuple(problems)


LAYERS = Check(name="layers", summary="every layer runs exactly once, in order", check=_check)
