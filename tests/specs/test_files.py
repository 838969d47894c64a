"""Whole texts in and out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.loader import MAX_BYTES
from planner.specs.files import read_text, write_whole


def test_reads_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is read under its own name, and ``-`` is standard input."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_text(str(path)) == ("a: 1\n", str(path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("b: ü".encode())))
    assert read_text("-") == ("b: ü", "<stdin>")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: 1\nb: \xff\xfa", ":2: is not UTF-8 text (byte 0xff); save it as UTF-8"),
        ("a: 1".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (b"x" * (MAX_BYTES + 1), "is larger than"),
    ],
)
def test_refuses_what_is_no_text(tmp_path: Path, data: bytes, words: str) -> None:
    """Bytes that are no UTF-8 text, or too many, are one clear problem."""
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    with pytest.raises(SpecError) as caught:
        read_text(str(path))
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_reader_may_allow_more_or_less(tmp_path: Path) -> None:
    """Tables are longer than specifications; what is beyond the limit that was asked for is refused."""
    path = tmp_path / "runs.csv"
    path.write_bytes(b"x" * (2**20 + 1))
    assert len(read_text(str(path), 2**21)[0]) == 2**20 + 1
    with pytest.raises(SpecError, match="is larger than 1 MiB; split it"):
        read_text(str(path), 2**20)


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    """A misspelt name is answered with the file that is there."""
    (tmp_path / "cluster.yaml").write_text("a: 1")
    with pytest.raises(SpecError, match=r"no such file; did you mean .*cluster\.yaml\?"):
        read_text(str(tmp_path / "cluste.yaml"))


@pytest.mark.parametrize("name", ["", ".", "a\0b", "x" * 5000])
def test_unreadable_paths(tmp_path: Path, name: str) -> None:
    """Folders and impossible names are problems, not tracebacks."""
    with pytest.raises(SpecError):
        read_text(f"{tmp_path}/{name}")


def test_writes_all_or_nothing(tmp_path: Path) -> None:
    """A file is replaced as a whole, and nothing else is left in its folder."""
    path = tmp_path / "plan.yaml"
    write_whole(str(path), "a: 1\n")
    write_whole(str(path), "a: 2\n")
    assert path.read_text() == "a: 2\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "words"), [("", "is a folder"), ("no/a.yaml", "there is no folder"), ("f/a", "folder")]
)
def test_what_cannot_be_written(tmp_path: Path, name: str, words: str) -> None:
    """A path that cannot be written is a problem, and leaves nothing behind."""
    (tmp_path / "f").write_text("")
    with pytest.raises(SpecError, match=words):
        write_whole(f"{tmp_path}/{name}", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_read_only_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be written is not replaced through its folder."""
    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(SpecError, match="read-only"):
        write_whole(str(path), "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_devices_are_written_through() -> None:
    """What is no plain file, such as the null device, is written and not replaced."""
    write_whole("/dev/null", "text")
    assert not Path("/dev/null").is_file()
