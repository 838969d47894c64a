"""How far a search has come, on one line of standard error that is written over, on a terminal only."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from planner.domain.progress import Reporter, Standing

EVERY = 0.2
"""[s] between two lines of a phase."""
ERASE = "\r\x1b[K"
"""Empties the line that the cursor is on (ECMA-48: carriage return, erase in line)."""


class Progress(Reporter):
    """Writes a line when a phase begins, and five a second in it, each over the last."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin to count the time that `now` [s] tells."""
        self._now = now
        self._started = self._next = now()
        self._phase = ""

    def progress(self, standing: Standing) -> None:
        """Show where the search is."""
        now = self._now()
        if standing.phase == self._phase and now < self._next:
            return
        from planner.report.progress import progress_line

        self._next, self._phase = now + EVERY, standing.phase
        sys.stderr.write(ERASE + progress_line(standing, now - self._started, _columns() - 1))
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self._phase:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
            self._phase = ""


@contextmanager
def progress() -> Iterator[Reporter]:
    """Show what the reporter hears while somebody watches, and leave nothing of it behind."""
    if not is_watched():
        yield Reporter()
        return
    shown = Progress()
    try:
        yield shown
    finally:
        shown.clear()


def _columns() -> int:
    """Return the columns of the page, no more than the terminal has: a longer line could not be written over."""
    from planner.report.terminal import page_width

    try:
        own = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        own = 0
    return min(page_width(), own or page_width())


def is_watched() -> bool:
    """Whether standard error is a terminal on which a line can be written over."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
