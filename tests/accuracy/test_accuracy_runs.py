"""CSV files to runs: every cell typed, every problem with its place."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.judged_runs import DATA, judged, run
from planner.accuracy.runs import NEEDED, PROBLEMS_MAX, read_runs
from planner.accuracy.written import ADDED, predictions_csv
from planner.errors import SpecError
from planner.units import GIB

HEADER = "id,layers,hidden,heads,seq,gpu,gpus,gbs,iter_time_s,oom\n"
GOOD = "a,2,64,4,128,H100,8,16,1.5,0\n"


def written(folder: Path, text: str, name: str = "runs.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


def problems(folder: Path, text: str) -> list[str]:
    """Return the problems of a file, each with its place in it."""
    path = written(folder, text)
    with pytest.raises(SpecError) as caught:
        read_runs([path])
    return [str(problem).removeprefix(path) for problem in caught.value.problems]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.stem)
def test_published_runs_are_read(path: Path) -> None:
    """Every row of the files kept here is a run, none of them without anything measured."""
    found = read_runs([str(path)])
    with path.open(encoding="utf-8", newline="") as file:
        assert [one.row for one in found] == list(csv.DictReader(file))
    assert all(one.source for one in found)
    assert all(one.step_time or one.peak_memory or one.oom for one in found)


def test_cells_are_typed(tmp_path: Path) -> None:
    """Whole numbers may be written as pandas writes them; what is empty or not a column is unknown."""
    text = HEADER + '"a, b",4.0, 64 ,1e1,128,H100,8,+16,.5,1.0\n\nc,,,,,,,,,\n'
    first, second = read_runs([written(tmp_path, text)])
    assert (first.id, first.layers, first.hidden, first.heads, first.gbs) == ("a, b", 4, 64, 10, 16)
    assert (first.iter_time_s, first.oom, first.gpu) == (0.5, "1", "H100")
    assert isinstance(first.layers, int)
    assert (first.tp, first.source, first.mem_gib_per_gpu) == (None, "", None)
    assert (second.layers, second.iter_time_s, second.oom) == (None, None, "")
    assert [one.place.removeprefix(str(tmp_path)) for one in (first, second)] == [
        "/runs.csv, line 2",
        "/runs.csv, line 4",
    ]


def test_precisions_are_read_in_any_case(tmp_path: Path) -> None:
    """Once, where they are read: kernels, gradients and peaks all go by the name."""
    path = tmp_path / "runs.csv"
    path.write_text(f"precision,{HEADER}FP16,{GOOD}", encoding="utf-8")
    assert [run.precision for run in read_runs([str(path)])] == ["fp16"]


def test_lines_are_counted_through_long_cells(tmp_path: Path) -> None:
    """A cell of several lines moves the rows behind it; a row stands where it starts."""
    text = HEADER + GOOD.replace("a,", '"a\nb\nc",') + "d,x" + GOOD[3:]
    assert problems(tmp_path, text) == [":5 layers: should be a number such as 8, 4.0 or 1e3, or empty, not 'x'"]


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("layers", "many", "should be a number such as 8, 4.0 or 1e3, or empty, not 'many'"),
        ("layers", "2.5", "should be a whole number, or empty, not 2.5"),
        ("layers", "nan", "should be a number such as 8, 4.0 or 1e3, or empty, not 'nan'"),
        ("iter_time_s", "inf", "should be a number such as 8, 4.0 or 1e3, or empty, not 'inf'"),
        ("iter_time_s", "1e999", "should be a number such as 8, 4.0 or 1e3, or empty, not '1e999'"),
        ("iter_time_s", "-1", "should be more than 0, or empty where it is not known, not -1"),
        ("gpus", "0", "should be more than 0, or empty where it is not known, not 0"),
        ("oom", "yes", "should be 0 (ran), 1 (out of memory), fail, or empty, not 'yes'"),
    ],
)
def test_what_is_no_value_is_told(column: str, cell: str, says: str, tmp_path: Path) -> None:
    """Line, column, what is wrong and what would be right."""
    at = HEADER.strip().split(",").index(column)
    cells = GOOD.strip().split(",")
    cells[at] = cell
    assert problems(tmp_path, HEADER + GOOD + ",".join(cells) + "\n") == [f":3 {column}: {says}"]


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("zero", "4", "should be at most 3, not 4"),
        ("sp", "8", "should be at most 1, not 8"),
        ("mfu", "47", "should be at most 1, not 47"),
        ("grad_bytes", "1000", "should be at most 16, not 1000"),
        ("params_b", "1e300", "should be at most 1e+12, not 1e300"),
        ("mfu", "1e-300", "should be at least 1e-09, not 1e-300"),
        ("zero", "-1", "should be at least 0, or empty where it is not known, not -1"),
    ],
)
def test_numbers_beyond_their_range_are_told(column: str, cell: str, says: str, tmp_path: Path) -> None:
    """A share written as a percentage, or a ZeRO stage that does not exist."""
    assert problems(tmp_path, f"{column},{HEADER}{cell},{GOOD}") == [f":2 {column}: {says}"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": is empty; write a header and one row a run"),
        ("\n\n", ": is empty; write a header and one row a run"),
        (HEADER, ": has a header and no rows; write one row a run"),
        ("id;gpu\na;b\n", ":1: is separated by ';'; write comma-separated values, quotes inside quotes doubled"),
        (HEADER + '"a\n', ":2: is broken CSV (unexpected end of data); "),
        (HEADER + "a\0" + GOOD, ":2: is no text (a zero byte); "),
        (HEADER + GOOD + GOOD[2:], ":3: has 9 cells where the header has 10; "),
        ("gpu," + HEADER + GOOD, ":1: column gpu stands there twice; keep one"),
        ("," + HEADER + GOOD, ":1: column 1 has no name; name or remove it"),
        ("gpu\nH100\n", ":1: lacks the columns layers, hidden, heads, seq, gpus, gbs; add them, a cell may be empty"),
    ],
)
def test_broken_files_are_told(text: str, says: str, tmp_path: Path) -> None:
    """A file that is no table of runs is one clear problem."""
    assert problems(tmp_path, text)[0].startswith(says)


def test_something_must_be_measured(tmp_path: Path) -> None:
    """A table without time, memory and outcome has nothing to compare with."""
    text = ",".join(NEEDED) + "\n" + ",".join("1" * len(NEEDED)) + "\n"
    assert problems(tmp_path, text) == [
        ":1: holds nothing measured; add one of the columns iter_time_s, tokens_per_s_per_gpu, mem_gib_per_gpu, oom"
    ]


def test_all_problems_of_all_files_at_once_up_to_a_limit(tmp_path: Path) -> None:
    """Two files and a missing one are told together; a thousand problems are not a thousand lines."""
    first, second = written(tmp_path, HEADER + GOOD.replace("64", "x")), written(tmp_path, HEADER, "b.csv")
    with pytest.raises(SpecError) as caught:
        read_runs([first, second, str(tmp_path / "c.csv")])
    assert [problem.place.removeprefix(str(tmp_path)) for problem in caught.value.problems] == [
        "/runs.csv:2 hidden",
        "/b.csv",
        "/c.csv",
    ]
    many = problems(tmp_path, HEADER + GOOD.replace("64", "x") * 1000)
    assert len(many) == PROBLEMS_MAX + 1
    assert many[-1] == "and 980 more of such problems"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` is standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((HEADER + GOOD).encode())))
    assert [one.place for one in read_runs(["-"])] == ["<stdin>, line 2"]


def test_step_time_is_the_printed_one_or_what_the_rate_comes_to() -> None:
    """10 samples of 100 tokens at 25 tokens/s on each of 8 devices: 1000 / 200 = 5 s."""
    assert run(tokens_per_s_per_gpu=25.0).step_time == 5.0
    assert run(tokens_per_s_per_gpu=25.0, iter_time_s=4.0).step_time == 4.0
    assert run(tokens_per_s_per_gpu=25.0, gbs=None).step_time is None
    assert run(tokens_per_s_per_gpu=25.0, gpus=None).step_time is None
    assert run().step_time is None


def test_a_run_out_of_memory_does_not_tell_what_it_needed() -> None:
    """40 GiB at the moment of the failure is no peak; a run that ended has one."""
    assert run(mem_gib_per_gpu=40.0, oom="1").peak_memory is None
    assert run(mem_gib_per_gpu=40.0, oom="0").peak_memory == 40 * GIB
    assert run(mem_gib_per_gpu=40.0).peak_memory == 40 * GIB


def test_rows_with_predictions_hold_all_that_was_read() -> None:
    """Columns of all files, unknown ones and awkward cells included; predictions of an earlier answer are replaced."""
    first = judged(1.23456789, 10, row={"id": "=1+1", "mine": 'a,"b"\nc\rd', "profile": "old"})
    second = judged(reason="because, well", limit=None, row={"id": "@b", "other": " x "})
    text = predictions_csv([first, second])
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == [
        {
            "id": "=1+1",
            "mine": 'a,"b"\nc\rd',
            "other": "",
            **dict(zip(ADDED, ("1.23457", "10", "1", "megatron", ""), strict=True)),
        },
        {
            "id": "@b",
            "mine": "",
            "other": " x ",
            **dict(zip(ADDED, ("", "", "", "", "because, well"), strict=True)),
        },
    ]


def test_written_rows_are_read_again(tmp_path: Path) -> None:
    """The file with predictions is a file of runs, and comes out the same."""
    runs = read_runs([str(DATA / "sample.csv")])
    text = predictions_csv([replace(judged(2, 80), run=one) for one in runs])
    again = read_runs([written(tmp_path, text)])
    assert [replace(one, place="", row={}) for one in again] == [replace(one, place="", row={}) for one in runs]
    assert predictions_csv([replace(judged(2, 80), run=one) for one in again]) == text
