"""Runs the real command line on a terminal, as somebody sits before it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import transcripts


class Terminal:
    """A command that runs on a terminal of 100 columns."""

    def __init__(self, process: subprocess.Popen[bytes], handle: int) -> None:
        """Read what `process` writes from `handle`."""
        self._process, self._handle = process, handle
        self._read = b""

    def until(self, text: str) -> str:
        """Return what is shown up to `text`, from where the last call ended; the command must not end before."""
        while text.encode() not in self._read:
            assert self._more(), f"ended without {text!r}:\n{self._read.decode()}"
        shown, _, self._read = self._read.partition(text.encode())
        return shown.decode() + text

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Return the exit code and what is shown until the command ends."""
        while self._more():
            pass
        return self._process.wait(transcripts.TIME_LIMIT), self._read.decode()

    def _more(self) -> bool:
        """Read on; tell whether there was anything."""
        ready, _, _ = select.select([self._handle], [], [], transcripts.TIME_LIMIT)
        assert ready, f"hangs after:\n{self._read.decode()}"
        try:
            found = os.read(self._handle, 1 << 16)
        except OSError:  # how Linux tells that nobody has the terminal open any more
            return False
        self._read += found
        return bool(found)


@contextmanager
def terminal(command: list[str], directory: Path, stdout: IO[bytes] | None = None) -> Iterator[Terminal]:
    """Run `command` on a terminal, its standard output in a file instead if one is given."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=transcripts.environment() | {"TERM": "xterm"},
        stdin=theirs,
        stdout=stdout or theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
