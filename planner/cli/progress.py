"""How far a search has come, on one line of standard error that is written over, on a terminal only."""

from __future__ import annotations

import sys
import time

from planner.domain.progress import Reporter
from planner.report.explain import progress_line
from planner.report.layout import cut
from planner.report.terminal import page_width

EVERY = 0.2
"""[s] between two lines."""


class Progress(Reporter):
    """Writes at most five lines a second, each over the last."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._next = time.monotonic() + EVERY
        self._shown = False

    def progress(self, phase: str, open_sets: int, best: float, bound: float) -> None:
        """Show where the search is; `best` and `bound` are seconds, infinite where not known."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next, self._shown = now + EVERY, True
        text = cut(progress_line(phase, open_sets, best, bound), page_width() - 1)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


def progress() -> Progress | None:
    """Return what shows progress, or None where nobody watches."""
    return Progress() if sys.stderr is not None and sys.stderr.isatty() else None
