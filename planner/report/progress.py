"""How far a search has come, in one line."""

from __future__ import annotations

from math import isfinite

from planner.domain.progress import Standing
from planner.report.figures import percent, plural, seconds
from planner.units import Seconds


def progress_line(standing: Standing, elapsed: Seconds) -> str:
    """Return how far a computation has come, the figures that matter least last.

    How long a search still takes is said only where a time limit tells. What is left of it tells nothing: as the last
    subproblems are the hardest, extrapolating how their number falls was wrong by up to ten times either way.
    """
    line = f"{clock(elapsed)}{_left(standing)} {standing.phase}"
    known = []
    if standing.left:
        known.append(f"{plural(standing.left(), 'subproblem')} left")
    if isfinite(standing.best):
        known.append(f"best {seconds(standing.best)}")
        if standing.bound > 0:
            gap = max(0.0, 1 - standing.bound / standing.best)
            known.append(f"gap {percent(gap)} (wanted {100 * standing.wanted:g}%)")
    return f"{line}: {', '.join(known)}" if known else line


def clock(time: Seconds) -> str:
    """Return a time as clocks show it, ``0:07`` or ``1:02:03``, begun seconds left out."""
    minutes, rest = divmod(int(time), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _left(standing: Standing) -> str:
    """Return what is known of the time left, nothing where no search is under way."""
    if isfinite(standing.ends_in):
        return f" (time limit in {clock(standing.ends_in)})"
    return " (time left unknown)" if standing.left else ""
