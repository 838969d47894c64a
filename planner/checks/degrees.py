"""Every degree belongs to a known axis and divides what the axis cuts."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.errors import Problem
from planner.parallelism import AXES, Axis


def _check(context: Context) -> tuple[Problem, ...]:
    axes = {axis.name: axis for axis in AXES}
    problems: list[Problem] = []
    for place, stage in context.places("strategy"):
        named = [name for name, _ in stage.strategy.degrees]
        problems.extend(Problem(place, f"names {name} twice; once is enough") for name in _repeated(named))
        for name, degree in stage.strategy.degrees:
            if name not in axes:
                problems.append(Problem(place, f"has no axis called {name}; known are {', '.join(axes)}"))
            elif degree < 1:
                problems.append(Problem(f"{place}.{name}", f"is {degree}; must be at least 1"))
            elif reason := axes[name].blocker(context.model, context.job.sequence, degree):
                remedy = f"the largest degree below that is possible is {_largest(axes[name], context, degree)}"
                problems.append(Problem(f"{place}.{name}", f"{reason}; {remedy}"))
    return tuple(problems)


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _largest(axis: Axis, context: Context, degree: int) -> int:
    """Return the largest legal degree below `degree` and within a node; nothing blocks degree 1."""
    widest = max((group.devices_per_node for group in context.cluster.groups), default=1)
    below = range(min(degree - 1, widest), 1, -1)
    return next((d for d in below if not axis.blocker(context.model, context.job.sequence, d)), 1)


DEGREES = Check(name="degrees", summary="every degree belongs to a known axis and divides what it cuts", check=_check)
