"""The line that shows how far a search has come: on a terminal, and nowhere else."""

from __future__ import annotations

import io
import os

import pytest

from planner.cli.command import say
from planner.cli.progress import ERASE, EVERY, Progress, progress
from planner.domain.progress import Standing


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal of 100 columns in the place of standard error, and return what is written there."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def standing(phase: str, left: int) -> Standing:
    return Standing(phase=phase, left=lambda: left)


def test_lines_are_written_over_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phase that begins is shown at once, further steps of it five times a second, and nothing is left at the end."""
    terminal = on_terminal(monkeypatch)
    clock = [10.0]
    shown = Progress(lambda: clock[0])
    for seconds, phase, left in (
        (0.0, "equal replicas", 9),
        (0.0, "equal replicas", 8),
        (EVERY, "equal replicas", 7),
        (0.0, "unlike replicas", 6),
        (EVERY / 2, "unlike replicas", 5),
        (60.0, "unlike replicas", 4),
    ):
        clock[0] += seconds
        shown.progress(standing(phase, left))
    shown.clear()
    shown.clear()
    assert terminal.getvalue().split(ERASE) == [
        "",
        "0:00 (time left unknown) equal replicas: 9 subproblems to go",
        "0:00 (time left unknown) equal replicas: 7 subproblems to go",
        "0:00 (time left unknown) unlike replicas: 6 subproblems to go",
        "1:00 (time left unknown) unlike replicas: 4 subproblems to go",
        "",
    ]


def test_what_is_left_is_counted_only_to_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting takes time: a step that is not shown is not counted."""
    terminal = on_terminal(monkeypatch)
    counted = []

    def left() -> int:
        counted.append(1)
        return len(counted)

    step = Standing(phase="equal replicas", left=left)
    shown = Progress(lambda: 0.0)
    for _ in range(100):
        shown.progress(step)
    assert len(counted) == 1
    assert terminal.getvalue()


def test_a_line_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 40 columns it takes 39: one that fills the last column would be wrapped by some terminals."""
    terminal = on_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "40")
    Progress(lambda: 0.0).progress(standing("equal replicas", 1323))
    assert len(terminal.getvalue().removeprefix(ERASE)) == 39


def test_the_terminal_of_the_line_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where results go to a file, standard error's own width holds: 60 columns, of which the line takes 59."""
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(terminal, "fileno", lambda: 2)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((60, 24)))
    step = Standing(phase="equal replicas", left=lambda: 1323, best=26.65, bound=18.6)
    Progress(lambda: 0.0).progress(step)
    assert len(terminal.getvalue().removeprefix(ERASE)) == 59


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the search, the line is empty afterwards."""
    terminal = on_terminal(monkeypatch)

    def interrupted() -> None:
        with progress() as reporter:
            reporter.progress(standing("replay", 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith(ERASE)


def test_a_note_takes_the_place_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said while a search is under way begins on an empty line."""
    terminal = on_terminal(monkeypatch)
    with progress() as reporter:
        reporter.progress(Standing(phase="reading"))
        say("note: something\n")
    assert terminal.getvalue() == f"{ERASE}0:00 reading{ERASE}note: something\n{ERASE}"


@pytest.mark.parametrize("kind", ["file", "dumb"])
def test_nothing_is_shown_where_nobody_watches(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a file or pipe, nor on a terminal on which no line can be written over."""
    stream: io.StringIO = on_terminal(monkeypatch)
    if kind == "file":
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
    if kind == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    with progress() as reporter:
        reporter.progress(standing("replay", 1))
        say("note\n")
    assert stream.getvalue() == "note\n"


def test_nothing_is_shown_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed standard error is no failure."""
    monkeypatch.setattr("sys.stderr", None)
    with progress() as reporter:
        reporter.progress(standing("replay", 1))
