"""Every stage fits into its device's memory, less the head-room."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.domain.prediction import FORWARD_BACKWARD, PEAK_WORDS
from planner.errors import Problem
from planner.units import GIB


def _check(context: Context) -> tuple[Problem, ...]:
    problems = []
    for (place, stage), cost in zip(context.places(), context.stages or (), strict=False):
        group = context.group(stage)
        if group is None:
            continue
        peak = sum(size for _, size in cost.memory)
        limit = group.device.memory * (1 - context.job.headroom)
        if peak > limit:
            part, size = max(cost.memory, key=lambda entry: entry[1], default=("nothing", 0.0))
            moment, _ = max(cost.peaks, key=lambda entry: entry[1])
            when = "" if moment == FORWARD_BACKWARD else f" at {PEAK_WORDS[moment]}"
            message = (
                f"needs {peak / GIB:.2f} GiB{when} on each {group.device.name}, "
                f"{(peak - limit) / GIB:.2f} GiB more than the {limit / GIB:.2f} GiB that "
                f"{context.job.headroom:.0%} head-room leaves; the largest part is {part} with {size / GIB:.2f} GiB"
            )
            problems.append(Problem(place, message))
    return tuple(problems)


MEMORY = Check(
    code="PL108",
    name="memory",
    summary="every stage fits into its device's memory, less the head-room",
    why=(
        "A run that is short of memory dies at its first step, or hours later when the allocator has torn its memory "
        "apart: that is what the head-room is for. `planner check` lists what would help, cheapest first."
    ),
    check=_check,
)
