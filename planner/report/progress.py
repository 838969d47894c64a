"""How far a search has come, in one line."""

from __future__ import annotations

from math import isfinite

from planner.domain.progress import Standing
from planner.report.figures import percent, plural, seconds
from planner.report.layout import WIDTH, cut
from planner.units import Seconds


def progress_line(standing: Standing, elapsed: Seconds, width: int = WIDTH) -> str:
    """Return how far a computation has come, in fewer words where the line is narrow.

    How long a search still takes is said only where a time limit tells. The number of subproblems left falls to zero,
    but the last ones are the hardest: of 405B on three kinds of devices, the end that an even fall promises came up to
    ten times later, and the end that even halving promises up to twenty times earlier.
    """
    head = f"{clock(elapsed)}{_left(standing)} {standing.phase}"
    to_go, best, gap = "", "", ""
    if standing.left:
        to_go = f"{plural(standing.left(), 'subproblem')} to go"
    if isfinite(standing.best):
        best = f"best {seconds(standing.best)}"
        share = max(0.0, 1 - standing.bound / standing.best)
        gap = f"gap {percent(share)} (wanted {100 * standing.wanted:g}%)" if standing.bound > 0 else ""
    line = _joined(head, to_go, gap, best)
    if len(line) <= width:
        return line
    word = to_go.split(" ", 1)[0]
    return cut(_joined(head, word and f"{word} to go", gap.split(" (", 1)[0], best), width)


def clock(time: Seconds) -> str:
    """Return a time as clocks show it, ``0:07`` or ``1:02:03``, begun seconds left out."""
    minutes, rest = divmod(int(time), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _joined(head: str, *known: str) -> str:
    text = ", ".join(filter(None, known))
    return f"{head}: {text}" if text else head


def _left(standing: Standing) -> str:
    """Return what is known of the time left, nothing where no search is under way."""
    if isfinite(standing.ends_in):
        return f" (limit in {clock(standing.ends_in)})"
    return " (time left unknown)" if standing.left else ""
