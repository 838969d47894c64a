"""Files that are looked at again and again: which of them say something else than before."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from planner.domain.progress import Reporter, Standing

EVERY = 0.2
"""[s] between two looks."""


class FilesChanged(Exception):
    """Files say something else than what a computation under way was given."""

    def __init__(self, names: Sequence[str]) -> None:
        """Keep the `names` of the files."""
        self.names = tuple(names)
        super().__init__(", ".join(names))


class Files:
    """Files as they were when this was made.

    What they hold counts, not when they were written: a file that is saved unchanged has not changed, and one that is
    written beside and renamed into its place has. A change counts once two looks find the same, so that no half-written
    file is read, and none that is gone for a moment is missed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Look at the files called `names`."""
        self.names = tuple(dict.fromkeys(names))
        self._given = self._last = self._look()

    def changed(self) -> tuple[str, ...]:
        """Look again, and return the names of the files that have changed, once they are as at the last look."""
        before, self._last = self._last, self._look()
        pairs = zip(self.names, self._given, self._last, strict=True)
        return tuple(name for name, given, now in pairs if given != now) if before == self._last else ()

    def wait(self, sleep: Callable[[float], object] = time.sleep) -> tuple[str, ...]:
        """Return the names of files that have changed as soon as there are any."""
        while not (names := self.changed()):
            sleep(EVERY)
        return names

    def _look(self) -> list[bytes]:
        return [_digest(name) for name in self.names]


class Until(Reporter):
    """Gives a computation up once one of the files that it was given has changed."""

    def __init__(self, reporter: Reporter, files: Files, now: Callable[[], float] = time.monotonic) -> None:
        """Pass what is heard on to `reporter`, and look at `files` from time to time."""
        self._reporter, self._files, self._now = reporter, files, now
        self._next = now() + EVERY

    def progress(self, standing: Standing) -> None:
        """Pass it on.

        Raises:
            FilesChanged: a file has changed.

        """
        if self._now() >= self._next:
            if names := self._files.changed():
                raise FilesChanged(names)
            self._next = self._now() + EVERY
        self._reporter.progress(standing)


def _digest(name: str) -> bytes:
    """Return what tells the contents of a file from others; of one that cannot be read, nothing."""
    from planner.loader import MAX_BYTES

    try:
        with Path(name).open("rb") as file:
            return hashlib.blake2b(file.read(MAX_BYTES + 1)).digest()
    except (OSError, ValueError):
        return b""
