"""Files that are watched: what counts as a change, and when."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.cli.files import EVERY, Files, FilesChanged, Until
from planner.domain.progress import Reporter, Standing


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """Return a file."""
    path = tmp_path / "one.yaml"
    path.write_text("a: 1\n", encoding="utf-8")
    return path


def write(path: Path) -> None:
    path.write_text("a: 2\n", encoding="utf-8")


def write_as_long_ago(path: Path) -> None:
    """Write as many bytes, and leave the times as they were."""
    status = path.stat()
    write(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def rename_into_place(path: Path) -> None:
    """Write beside the file and rename, as editors do that never leave half a file."""
    beside = path.with_suffix(".new")
    write(beside)
    beside.replace(path)


def move_away_and_write(path: Path) -> None:
    """Keep the old file as a backup and write a new one, as editors do that keep backups."""
    path.replace(path.with_suffix(".yaml~"))
    write(path)


@pytest.mark.parametrize("edit", [write, write_as_long_ago, rename_into_place, move_away_and_write, Path.unlink])
def test_a_change_is_found_once_it_has_settled(one: Path, edit: Callable[[Path], None]) -> None:
    """However a file is written: the first look that finds it changed waits for a second that finds the same."""
    files = Files([str(one)])
    assert files.changed() == ()
    edit(one)
    assert files.changed() == ()
    assert files.changed() == (str(one),)
    assert files.changed() == (str(one),)


def touch(path: Path) -> None:
    """Save without a change."""
    path.write_text("a: 1\n", encoding="utf-8")


def replace_with_a_copy(path: Path) -> None:
    beside = path.with_suffix(".new")
    touch(beside)
    beside.replace(path)


@pytest.mark.parametrize("edit", [touch, replace_with_a_copy])
def test_what_is_saved_unchanged_has_not_changed(one: Path, edit: Callable[[Path], None]) -> None:
    """A new time or a new file of the same text is no reason to plan again."""
    files = Files([str(one)])
    edit(one)
    assert [files.changed() for _ in range(3)] == [()] * 3


def test_a_file_that_is_gone_for_a_moment_has_not_changed(one: Path) -> None:
    """One look without it is not enough."""
    files = Files([str(one)])
    one.unlink()
    assert files.changed() == ()
    touch(one)
    assert [files.changed() for _ in range(3)] == [()] * 3


def test_a_file_that_is_still_written_is_waited_for(one: Path) -> None:
    """As long as every look finds something else there is no change yet."""
    files = Files([str(one)])
    for number in range(2, 5):
        one.write_text(f"a: {number}\n", encoding="utf-8")
        assert files.changed() == ()
    assert files.changed() == (str(one),)


def test_a_file_may_come_later(tmp_path: Path) -> None:
    """A file that was not there when the watch began is a change when it comes."""
    path = tmp_path / "later.yaml"
    files = Files([str(path)])
    assert files.changed() == ()
    write(path)
    assert (files.changed(), files.changed()) == ((), (str(path),))


def test_those_that_changed_are_named(one: Path, tmp_path: Path) -> None:
    """Files that are named twice are one; those that are the same as before are not named."""
    other = tmp_path / "other.yaml"
    other.write_text("b: 1\n", encoding="utf-8")
    files = Files([str(one), str(other), str(one)])
    assert files.names == (str(one), str(other))
    write(other)
    files.changed()
    assert files.changed() == (str(other),)


def test_waiting_sleeps_between_looks(one: Path) -> None:
    """A pause follows each look that finds nothing: two before the edit, and the one that lets it settle."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            write(one)

    assert Files([str(one)]).wait(sleep) == (str(one),)
    assert slept == [EVERY] * 3


class Ear(Reporter):
    """Counts what it hears."""

    heard = 0

    def progress(self, standing: Standing) -> None:  # noqa: ARG002
        """Count."""
        self.heard += 1


def test_a_search_is_given_up_when_a_file_changes(one: Path) -> None:
    """Looks are as far apart as in waiting, however many steps are told; until there is a change they are passed on."""
    clock, ear = [0.0], Ear()
    until = Until(ear, Files([str(one)]), lambda: clock[0])
    write(one)
    for _ in range(5):
        until.progress(Standing(phase="replay"))
    clock[0] += EVERY
    until.progress(Standing(phase="replay"))
    until.progress(Standing(phase="replay"))
    clock[0] += EVERY
    with pytest.raises(FilesChanged, match=r"one\.yaml") as raised:
        until.progress(Standing(phase="replay"))
    assert raised.value.names == (str(one),)
    assert ear.heard == 7
