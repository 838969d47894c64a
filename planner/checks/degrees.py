"""Every degree belongs to a known axis and divides what the axis cuts."""

from __future__ import annotations

from dataclasses import replace

from planner.checks.base import Check, Context
from planner.domain.plan import CP_COMM_TYPES, Strategy
from planner.errors import Problem
from planner.parallelism import AXES, Axis, blockers


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
        if stage.strategy.cp_comm_type not in CP_COMM_TYPES:
            known = ", ".join(CP_COMM_TYPES)
            problems.append(Problem(f"{place}.cp_comm_type", f"is {stage.strategy.cp_comm_type}; known are {known}"))
        if not any(problem.place.startswith(place) for problem in problems):
            problems.extend(_blocked(place, stage.strategy, context))
    return tuple(problems)


def _blocked(place: str, strategy: Strategy, context: Context) -> list[Problem]:
    """Return which of the known degrees divide nothing, with what would."""
    reasons = blockers(AXES, context.model, context.job.sequence, strategy)
    return [
        Problem(
            f"{place}.{axis.name}",
            f"{reasons[axis.name]}; the largest degree below that is possible is {_largest(axis, strategy, context)}",
        )
        for axis in AXES
        if axis.name in reasons
    ]


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _largest(axis: Axis, strategy: Strategy, context: Context) -> int:
    """Return the largest legal degree of `axis` below that of `strategy` and within a node; nothing blocks degree 1."""
    widest = max((group.devices_per_node for group in context.cluster.groups), default=1)
    below = range(min(strategy.degree(axis.name) - 1, widest), 1, -1)
    tried = ((degree, replace(strategy, degrees=_changed(strategy, axis.name, degree))) for degree in below)
    sequence = context.job.sequence
    return next(
        (degree for degree, other in tried if axis.name not in blockers(AXES, context.model, sequence, other)), 1
    )


def _changed(strategy: Strategy, axis: str, degree: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, degree if name == axis else given) for name, given in strategy.degrees)


DEGREES = Check(
    code="PL104",
    name="degrees",
    summary="every degree belongs to a known axis and divides what it cuts",
    why="A dimension that does not divide by its degree cannot be cut in equal parts, which every framework wants.",
    check=_check,
)
