"""The beginning and the end of a step that is too long to be shown whole: what lies between them repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.simulate import Event, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is shown of a step."""

    events: tuple[Event, ...]
    gap: tuple[float, float] | None
    """[s] between which events begin that are left out; None if all are shown."""
    num_hidden: int = 0
    """Events that are left out."""


def window(found: Timeline, most: int) -> Window:
    """Return at most `most` events: those that begin in an equally long first and last part of the step.

    All of them are shown if they are no more; else as many from both ends as may be, down to whole ends of equal start.
    """
    if len(found.events) <= most:
        return Window(events=found.events, gap=None)
    distances = sorted(_distance(event, found.step_time) for event in found.events)
    reach = distances[most]
    shown = tuple(event for event in found.events if _distance(event, found.step_time) < reach)
    return Window(events=shown, gap=(reach, found.step_time - reach), num_hidden=len(found.events) - len(shown))


def _distance(event: Event, end: float) -> float:
    """Return how far from the nearer end of the step an event begins [s]."""
    return min(event.start, end - event.start)


def pass_name(event: Event, chunks: int = 1) -> str:
    """Return what a pass is called: ``F3``, with chunks ``F3.1``."""
    return f"{event.name}{event.micro_batch}" + (f".{event.chunk}" if chunks > 1 else "")


def busy(passes: Sequence[Event]) -> float:
    """Return how long passes take together [s]."""
    return sum(event.end - event.start for event in passes)
