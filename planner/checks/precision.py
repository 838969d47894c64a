"""Every device in use can multiply in the job's precision."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    precision = context.job.precision
    return tuple(
        Problem(place, f"is {stage.group}, whose {group.device.name} has no {precision}, the precision of the job")
        for place, stage in context.places("group")
        if (group := context.group(stage)) is not None and not group.device.peak(precision)
    )


PRECISION = Check(
    code="PL106",
    name="precision",
    summary="every device in use has the job's precision",
    why="Devices without the precision fall back to a slower one, or fail at the first product.",
    check=_check,
)
