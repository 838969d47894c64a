"""``planner accuracy``: files in, figures and rows out, with a judge of known answers."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import planner.accuracy.judge
from accuracy.judged_runs import DATA, judged
from cli.stub_pipeline import Planner
from planner.accuracy.judged import Judged
from planner.accuracy.runs import Run

SAMPLE = "tests/accuracy/data/sample.csv"


@pytest.fixture
def headrooms(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every run be predicted to take 10 s and 60 of 80 GiB, those that failed left out; return the head-rooms."""
    asked: list[float] = []

    def judge_runs(runs: Sequence[Run], headroom: float, transform: object = None) -> tuple[Judged, ...]:
        asked.append(headroom)
        known, unknown = judged(10, 60, limit=80 * (1 - headroom)), judged(reason="it failed", limit=None)
        return tuple(replace(unknown if run.oom == "fail" else known, run=run) for run in runs)

    monkeypatch.setattr(planner.accuracy.judge, "judge_runs", judge_runs)
    return asked


def test_figures_of_a_file(run: Planner, headrooms: list[float]) -> None:
    """12 rows, one of which failed: 8 have a time, 3 a peak, 11 an outcome, of which 3 ran out of memory.

    All are predicted to fit: 8 of 11 right, 3 false fits.
    """
    done = run("accuracy", SAMPLE, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert headrooms == [0.1]
    assert (found["rows"], found["judged"], found["healthy"]["rows"]) == (12, 11, 11)
    assert (found["time"]["rows"], found["memory"]["rows"]) == (8, 3)
    assert found["fit"] == {"rows": 11, "accuracy": 8 / 11, "false_fit": 3 / 11, "false_oom": 0}
    assert found["skipped"] == [{"reason": "it failed", "count": 1}]
    assert sum(part["rows"] for part in found["sources"]) == sum(part["rows"] for part in found["groups"]) == 12


def test_a_head_room_changes_what_fits(run: Planner, headrooms: list[float]) -> None:
    """With 30% left free nothing fits: all that ran is a false OOM."""
    found = json.loads(run("accuracy", SAMPLE, "--headroom", "30%", "--format", "json").stdout)
    assert headrooms == [0.3]
    assert found["headroom"] == 0.3
    assert found["fit"] == {"rows": 11, "accuracy": 3 / 11, "false_fit": 0, "false_oom": 8 / 11}


def test_several_files_and_standard_input_are_one_table(run: Planner, headrooms: list[float]) -> None:
    """The rows of all inputs are judged together."""
    text = (DATA / "sample.csv").read_text(encoding="utf-8")
    done = run("accuracy", SAMPLE, "-", "--format", "json", stdin=text)
    assert json.loads(done.stdout)["rows"] == 24


def test_rows_are_written_beside_the_report(run: Planner, headrooms: list[float]) -> None:
    """``-o`` keeps every column and adds the predictions; ``-`` prints them and nothing else."""
    done = run("accuracy", SAMPLE, "-o", "out.csv")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("runs     12 rows of 4 sources, 11 judged\n")
    written = Path("out.csv").read_text(encoding="utf-8")
    assert run("accuracy", SAMPLE, "-o", "-").stdout == written
    rows = list(csv.DictReader(written.splitlines()))
    with Path(SAMPLE).open(encoding="utf-8", newline="") as file:
        before = list(csv.DictReader(file))
    assert [{name: row[name] for name in before[0]} for row in rows] == before
    assert {(row["predicted_step_time_s"], row["not_judged_because"]) for row in rows} == {
        ("10", ""),
        ("", "it failed"),
    }


def test_groups_are_shown_when_asked_for(run: Planner, headrooms: list[float]) -> None:
    """``--groups`` adds a row for each source, model and number of devices."""
    label = "2, 64 devices: LLAMA-13B"
    assert label in run("accuracy", SAMPLE, "--groups").stdout
    assert label not in run("accuracy", SAMPLE).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.csv"], "nothing.csv: no such file"),
        (["-", "-"], "only one of the inputs can be `-`"),
        ([SAMPLE, "--headroom", "1.5"], "--headroom: should be at least 0 and less than 1"),
        ([SAMPLE, "--headroom", "much"], "--headroom: should be at least 0 and less than 1"),
        ([SAMPLE, "--headroom", "nan"], "--headroom: should be at least 0 and less than 1"),
        ([SAMPLE, "-o", "nowhere/out.csv"], "there is no folder nowhere"),
    ],
)
def test_wrong_input_ends_with_2(arguments: list[str], says: str, run: Planner, headrooms: list[float]) -> None:
    """Nothing is judged, and standard output stays empty."""
    done = run("accuracy", *arguments)
    assert (done.exit_code, done.stdout, headrooms) == (2, "", [])
    assert says in done.stderr
