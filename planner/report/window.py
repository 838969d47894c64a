"""The beginning and the end of a step that is too long to be shown whole: what lies between them repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.simulate import Event
from planner.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is shown of a step."""

    events: tuple[Event, ...]
    gap: tuple[float, float] | None
    """[s] between which events begin that are left out; None if all are shown."""
    num_hidden: int = 0
    """Events that are left out."""


def window(events: Sequence[Event], step_time: Seconds, most: int) -> Window:
    """Return at most `most` events: those that begin in an equally long first and last part of the step.

    All of them are shown if they are no more; else as many from both ends as may be, alike ones together.
    """
    if len(events) <= most:
        return Window(events=tuple(events), gap=None)
    reach = sorted(_distance(event, step_time) for event in events)[most]
    shown = tuple(event for event in events if _distance(event, step_time) < reach)
    return Window(events=shown, gap=(reach, step_time - reach), num_hidden=len(events) - len(shown))


def _distance(event: Event, end: float) -> float:
    """Return how far from the nearer end of the step an event begins [s]."""
    return min(event.start, end - event.start)


def pass_name(event: Event, chunks: int = 1) -> str:
    """Return what a pass is called: ``F3``, with chunks ``F3.1``, counted in each direction."""
    return f"{event.name}{event.micro_batch}" + (f".{event.chunk % chunks}" if chunks > 1 else "")


def busy(passes: Sequence[Event]) -> float:
    """Return how long passes take together [s]."""
    return sum(event.end - event.start for event in passes)
