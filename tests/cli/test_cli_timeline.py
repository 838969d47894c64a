"""planner timeline and planner report, from a plan file to what is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.stub_pipeline import Pipeline, Planner
from planner.errors import Problem
from report.pages import embedded, numbers, read

CLUSTER = "1x4:h100-sxm-80gb+1x4:a100-sxm-80gb"


@pytest.fixture
def real_plan(run: Planner) -> str:
    """Return the name of a plan file that the real search made."""
    words = ("--no-references", "--global-batch", "16", "-c", "pp >= 2", "-c", "vpp <= 1", "-o", "plan.yaml")
    assert run("plan", CLUSTER, "model_specs/gpt2.json", *words).exit_code == 0
    return "plan.yaml"


def test_a_trace_is_the_default_of_a_json_file(run: Planner, real_plan: str) -> None:
    """The name of the file or --format says what is drawn; both write the same."""
    assert run("timeline", real_plan, "-o", "step.json").exit_code == 0
    printed = run("timeline", real_plan, "--format", "chrome").stdout
    assert Path("step.json").read_text(encoding="utf-8") == printed
    assert {event["ph"] for event in json.loads(printed)["traceEvents"]} == set("XMCsf")


def test_a_drawing_goes_to_a_file(run: Planner, real_plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as wide as a page there, whatever the terminal."""
    monkeypatch.setenv("COLUMNS", "60")
    assert run("timeline", real_plan, "-o", "step.txt").exit_code == 0
    written = max(map(len, Path("step.txt").read_text(encoding="utf-8").splitlines()))
    printed = max(map(len, run("timeline", real_plan).stdout.splitlines()))
    assert 60 < written <= 100
    assert printed <= 60


def test_the_page_shows_the_numbers_of_explain(run: Planner, real_plan: str) -> None:
    """What is embedded is what `planner explain --format json` prints, and what is shown are its numbers."""
    assert run("report", real_plan, "-o", "page.html").exit_code == 0
    made = Path("page.html").read_text(encoding="utf-8")
    document, explained = embedded(made), json.loads(run("explain", real_plan, "--format", "json").stdout)
    for one in (document, explained):
        one["search"]["search"].pop("seconds")
    assert document == explained
    assert document["certificate"]["lower_bound_s"] > 0
    known = set(numbers(document))
    assert [text for value, text in read(made).values if value not in known] == []
    text = Path(real_plan).read_text(encoding="utf-8")
    assert text in "".join(read(made).texts["pre"])


def test_the_commands_of_the_page_run(run: Planner, real_plan: str) -> None:
    """As they stand there; the page that they make has the same numbers, as the search is made again."""
    assert run("report", real_plan, "-o", "first.html").exit_code == 0
    first = Path("first.html").read_text(encoding="utf-8")
    commands = re.findall(r"^planner (.*)$", read(first).texts["pre"][0], flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["report", "explain", "timeline"]
    for command in commands:
        assert run(*command.split()).exit_code == 0, command
    second = Path("page.html").read_text(encoding="utf-8")
    assert read(second).values == read(first).values
    assert Path("step.json").exists()


def test_a_page_without_a_search(run: Planner, real_plan: str) -> None:
    """It is written at once, to standard output where no file is named, and again the same."""
    first, second = (run("report", real_plan, "--no-search").stdout for _ in range(2))
    assert first == second
    assert first.startswith("<!DOCTYPE html>")
    assert embedded(first)["search"] is None


@pytest.mark.parametrize("command", [("timeline",), ("report", "--no-search")])
def test_problems_are_told_and_end_with_1(
    run: Planner, pipeline: Pipeline, plan_file: str, command: tuple[str, ...]
) -> None:
    """What can be drawn is drawn; notes and problems go to standard error."""
    pipeline.problems, pipeline.notes = (Problem("plan.stages[0]", "is too full"),), ("something changed",)
    done = run(command[0], plan_file, *command[1:])
    assert done.exit_code == 1
    assert done.stdout
    assert "note: something changed" in done.stderr
    assert "plan.stages[0]: is too full" in done.stderr


@pytest.mark.parametrize("command", ["timeline", "report"])
def test_where_nothing_can_be_written_nothing_is_computed(run: Planner, command: str) -> None:
    """A missing folder is told before the plan is read."""
    done = run(command, "missing.yaml", "-o", "nowhere/page.html")
    assert done.exit_code == 2
    assert "there is no folder nowhere" in done.stderr


def test_a_plan_that_is_not_sound_cannot_be_drawn(run: Planner, real_plan: str) -> None:
    """Layers that are missing: only what is wrong is told."""
    text = Path(real_plan).read_text(encoding="utf-8")
    Path("broken.yaml").write_text(text.replace("num_microbatches: ", "num_microbatches: 9"), encoding="utf-8")
    for command in ("timeline", "report"):
        done = run(command, "broken.yaml")
        assert done.exit_code == 1
        assert done.stdout == ""
        assert "batch" in done.stderr


def test_traces_go_into_a_folder(run: Planner, real_plan: str) -> None:
    """One for each rank and the groups, in a folder that is made; standard output is none."""
    done = run("timeline", real_plan, "--format", "chakra", "-o", "new/traces")
    assert done.exit_code == 0
    names = {entry.name for entry in Path("new/traces").iterdir()}
    assert names == {"comm_groups.json", *(f"step.{rank}.et" for rank in range(len(names) - 1))}
    assert f"wrote {len(names) - 1} traces to new/traces" in done.stderr
    done = run("timeline", real_plan, "--format", "chakra")
    assert done.exit_code == 2
    assert "name a folder with -o" in done.stderr
    Path("file").write_text("", encoding="utf-8")
    assert "cannot be made a folder" in run("timeline", real_plan, "--format", "chakra", "-o", "file").stderr


def test_a_step_drawn_by_itself_says_so_beside_its_traces(run: Planner) -> None:
    """A schedule that never drains: what a step adds to a run, and how long one takes by itself."""
    layout = "pp=4,gbs=16,schedule=pipedream-2bw"
    printed = run("predict", CLUSTER, "model_specs/gpt2.json", "--layout", layout, "--format", "json").stdout
    Path("stale.yaml").write_text(json.dumps(json.loads(printed)["plan"]), encoding="utf-8")
    done = run("timeline", "stale.yaml", "--format", "chakra", "-o", "traces")
    assert done.exit_code == 0
    assert "note: pipedream-2bw begins a step before the last one has ended: a step adds" in done.stderr
