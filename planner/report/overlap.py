"""What is to be said of the drawing of one step where each begins before the last one has ended."""

from __future__ import annotations

from planner.domain.plan import Plan
from planner.report.figures import seconds
from planner.simulate import Timeline


def overlap(plan: Plan, found: Timeline) -> str:
    """Return why a step takes longer than the predicted one, as it is drawn by itself; empty where it does not."""
    if not is_longer(found):
        return ""
    return (
        f"{plan.schedule} begins a step before the last one has ended: a step adds {seconds(found.adds)} to a run, "
        f"and takes {seconds(found.step_time)} by itself, as it is drawn here"
    )


def is_longer(found: Timeline) -> bool:
    """Tell whether a step that is drawn by itself takes longer than it adds to a run, by a digit that is shown."""
    return seconds(found.adds) != seconds(found.step_time)
