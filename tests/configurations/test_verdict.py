"""What is said of a configuration of any kind: its rules, its plan on a cluster, and how far it is from the best."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from configurations.stub_form import STUB
from planner.cli import app
from planner.configurations.engine import applies
from planner.domain.configuration import Spot
from planner.errors import Problem
from planner.pipeline.verdict import unreadable

Run = Callable[..., Result]
CLUSTER = ("--cluster", "2x8:a100-sxm-40gb")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return a function that runs the command line where the only kind of configuration is the stub."""
    names = ("configurations", "pipeline.verdict", "pipeline.rules")
    for module in [importlib.import_module(f"planner.{name}") for name in names]:  # all, before the first is changed
        monkeypatch.setattr(module, "FORMS", (STUB,))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    Path("good").write_text("stub\nworld=16\ntp=2\npp=2\nbatch=16\n", encoding="utf-8")
    Path("bad").write_text("stub\nworld=16\ntp=3\nbatsh=16\n", encoding="utf-8")
    Path("experts").write_text("stub\nworld=16\nexperts=8\n", encoding="utf-8")
    return lambda *words, stdin=None: CliRunner().invoke(app, list(words), input=stdin)


def verdicts(done: Result) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(done.stdout)["files"]
    return found


def test_rules_tell_the_place(run: Run) -> None:
    """File, line and column, the setting as it is written, and the code; a warning is no problem."""
    done = run("check", "bad")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "bad: 1 problem, 1 warning",
        "  - bad:3:1 -tp: 16 ranks do not divide over tp 3 [ST101]",
        "  - bad:4:1 batsh: warning: is not known [ST001]",
        "  note:  give --cluster to have time and memory predicted",
    ]


def test_one_bad_file_does_not_stop_the_rest(run: Run) -> None:
    """Each has its verdict, and the exit code is that of the worst; standard input is a file like others."""
    done = run("check", "bad", "-", "nowhere", "--format", "json", stdin="stub\nworld=4\n")
    assert done.exit_code == 2
    assert [(one["file"], one["kind"], one["good"]) for one in verdicts(done)] == [
        ("bad", "stub", False),
        ("<stdin>", "stub", True),
        ("nowhere", None, False),
    ]
    assert run("check", "good").exit_code == 0


def test_it_is_predicted_on_a_cluster(run: Run) -> None:
    """The plan is that of the configuration: 4 replicas of 2 stages."""
    done = run("check", "good", *CLUSTER, "--no-search", "--format", "json")
    (found,) = verdicts(done)
    assert found["best"] is None
    prediction = found["prediction"]
    assert isinstance(prediction, dict)
    assert [stage["devices"] for stage in prediction["stages"]] == [8, 8]
    assert prediction["fits"]


def test_it_is_compared_with_the_best(run: Run) -> None:
    """The best plan for the same job is at least as fast, and the difference is told."""
    (found,) = verdicts(run("check", "good", *CLUSTER, "--format", "json"))
    best, mine = found["best"], found["prediction"]
    assert isinstance(best, dict)
    assert isinstance(mine, dict)
    assert best["share"] == pytest.approx(best["prediction"]["step_time_s"] / mine["step_time_s"])
    assert best["share"] < 1
    assert {"name": "pp", "before": "2", "after": "1"} in best["differences"]
    assert f"{best['share']:.1%} of the best found" in run("check", "good", *CLUSTER).stdout


def test_a_world_larger_than_the_cluster_is_a_problem(run: Run) -> None:
    """16 ranks do not go on 8 devices."""
    done = run("check", "good", "--cluster", "1x8:a100-sxm-40gb", "--no-search")
    assert done.exit_code == 1
    assert "[PL105]" in done.stdout


def test_an_impossible_layout_is_a_problem(run: Run) -> None:
    """A batch that does not divide is told with the configuration's name, not with an option nobody typed."""
    Path("odd").write_text("stub\nworld=16\ntp=2\nbatch=15\n", encoding="utf-8")
    done = run("check", "odd", *CLUSTER, "--no-search")
    assert done.exit_code == 1
    assert "odd: 1 problem\n  - odd: mbs=1 times dp=8 does not divide the global batch of 15" in done.stdout
    assert "[PL002]" in done.stdout


def test_what_cannot_be_planned_is_a_note(run: Run) -> None:
    """The rules were held, and that is said to be all."""
    done = run("check", "experts", *CLUSTER)
    assert done.exit_code == 0
    assert "time and memory are not predicted: experts: experts cannot be planned yet" in done.stdout


def test_rules_hold_for_versions() -> None:
    """From the first version on, before the last; the newest rules where no version is said."""
    always, sometimes = STUB.rules
    assert [applies(sometimes, version) for version in ("1.9", "2.0", "2.10", "3.0", "")] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert applies(always, "")


def test_a_version_may_be_said(run: Run) -> None:
    """Then its rules hold."""
    Path("wide").write_text("stub\nworld=16\ntp=16\n", encoding="utf-8")
    assert "ST102" not in run("check", "wide").stdout
    assert "[ST102]" in run("check", "wide", "--framework-version", "2.1").stdout
    assert run("check", "wide", "--framework-version", "new").exit_code == 2


def test_an_unknown_kind_is_refused(run: Run) -> None:
    """By name with the known ones; by its text with how to say it."""
    assert "choose one of plan, stub" in run("check", "good", "--from", "stab").stderr
    Path("run.sh").write_text("echo hello\n", encoding="utf-8")
    done = run("check", "run.sh")
    assert done.exit_code == 2
    assert "of no kind that is known (stub); name it with --from" in done.stderr


def test_the_summary_of_a_job_is_added_to(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where GitHub offers a file for it."""
    Path("summary.md").write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    done = run("check", "bad", "--format", "github")
    assert done.stdout.startswith("::error file=bad,line=3,col=1,title=ST101::-tp: 16 ranks")
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n### planner check")
    assert "| bad | 3 | ST101 |" in text


def test_a_rule_is_explained(run: Run) -> None:
    """By its code, in small letters too; an unknown one names the nearest."""
    done = run("explain", "st101")
    assert done.stdout.splitlines()[:3] == [
        "ST101: World divides (error)",
        "holds    world % tp = 0",
        "why      Else ranks are left over.",
    ]
    assert "ST102" in json.loads(run("explain", "ST102", "--format", "json").stdout)["code"]
    assert run("explain", "PL108").exit_code == 0
    assert "did you mean ST101" in run("explain", "ST111").stderr


def test_a_configuration_becomes_a_plan(run: Run) -> None:
    """`import plan` writes what `check` judges, with what was assumed."""
    done = run("import", "plan", "good", *CLUSTER, "-o", "plan.yaml")
    assert done.exit_code == 0, done.stderr
    assert "note: assumed: precision bf16" in done.stderr
    assert "pp 2, dp 4, tp 2" in run("check", "plan.yaml").stdout
    assert run("import", "plan", "experts", *CLUSTER).exit_code == 2


def test_a_job_is_planned_elsewhere(run: Run) -> None:
    """The same job on other devices, the difference line by line; the old layout is that of the configuration."""
    done = run(
        "plan", "--like", "good", "--cluster", "1x8:h100-sxm-80gb", "--format", "json", "--sequence-length", "2048"
    )
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    job = document["plan"]["job"]
    assert (job["global_batch"], job["sequence_length"], job["for"]) == (16, 2048, "megatron")
    names = {one["name"]: (one["before"], one["after"]) for one in document["difference"]["decision"]}
    assert names["sequence"] == ("4,096", "2,048")
    assert names["pp"][0] == "2"


def test_two_plans_are_compared(run: Run) -> None:
    """Like git diff: 0 where nothing differs, 1 with --exit-code where the decisions do."""
    run("import", "plan", "good", *CLUSTER, "-o", "a.yaml")
    Path("other").write_text("stub\nworld=16\ntp=4\npp=2\nbatch=16\n", encoding="utf-8")
    run("import", "plan", "other", *CLUSTER, "-o", "b.yaml")
    assert run("diff", "a.yaml", "a.yaml", "--exit-code").exit_code == 0
    assert run("diff", "a.yaml", "b.yaml").exit_code == 0
    done = run("diff", "a.yaml", "b.yaml", "--exit-code")
    assert done.exit_code == 1
    assert [line.split() for line in done.stdout.splitlines()[1:4]] == [
        ["a.yaml", "b.yaml"],
        ["tp", "2", "4"],
        ["dp", "4", "2"],
    ]
    assert "step time" in done.stdout


def test_replicas_fill_the_cluster_where_no_number_of_ranks_is_written() -> None:
    """A batch for 8 ranks does not come out on 7, and the message says which would."""
    batch = {"train_batch_size": 256, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 16}
    text = json.dumps({**batch, "zero_optimization": {"stage": 1}})
    seven = CliRunner().invoke(app, ["check", "-", "--cluster", "1x7:a100-sxm-80gb", "--no-search"], input=text)
    assert seven.exit_code == 1
    assert "[DS301]" in seven.stdout
    assert seven.stdout.count("it does not say how many ranks there are; all 7 devices of") == 1
    eight = CliRunner().invoke(app, ["check", "-", "--cluster", "1x8:a100-sxm-80gb", "--no-search"], input=text)
    assert eight.exit_code == 0


def test_strict_fails_on_warnings_and_on_what_is_not_predicted(run: Run) -> None:
    """A gate in CI does not pass in silence what it could not judge."""
    Path("warned").write_text("stub\nworld=16\nbatsh=16\n", encoding="utf-8")
    assert [run("check", name, "--strict").exit_code for name in ("good", "warned", "bad")] == [0, 1, 1]
    assert run("check", "experts", *CLUSTER).exit_code == 0
    assert run("check", "experts", *CLUSTER, "--strict").exit_code == 1


def test_strangers_may_be_passed_over(run: Run) -> None:
    """A hook that gets every script of a repository says so of those that start no training."""
    Path("run.sh").write_text("echo hello\n", encoding="utf-8")
    done = run("check", "run.sh", "good", "--skip-unknown")
    assert done.exit_code == 0
    assert "note: run.sh is of no known kind, and was passed over" in done.stderr
    assert run("check", "run.sh", "--skip-unknown").exit_code == 0
    assert run("check", "nowhere.sh", "--skip-unknown").exit_code == 2


def test_sizes_that_a_past_job_does_not_say_are_those_of_the_new_one(run: Run) -> None:
    """So that both columns of the difference are about the same step."""
    Path("sizeless").write_text("stub\nworld=16\ntp=2\n", encoding="utf-8")
    words = ("plan", "--like", "sizeless", *CLUSTER, "--global-batch", "64", "--format", "json")
    names = {one["name"] for one in json.loads(run(*words).stdout)["difference"]["decision"]}
    assert "global batch" not in names


def test_two_clusters_are_one_too_many(run: Run) -> None:
    """Neither is dropped without a word."""
    done = run("plan", "1x8:h100-sxm-80gb", "--like", "good", *CLUSTER)
    assert done.exit_code == 2
    assert "keep one" in done.stderr


def test_names_of_files_may_hold_what_places_do() -> None:
    """Blanks, colons and numbers in the name of a file; line and column behind it are told apart."""
    for name in ("a b.toml", "c:7.toml", "d 3:4 e.toml"):
        (one,) = unreadable(name, [Problem(f"{name}:12:5 key", "is no TOML")]).findings
        assert (one.spot, one.key) == (Spot(name, 12, 5), "key")
        (one,) = unreadable(name, [Problem(name, "is empty")]).findings
        assert (one.spot, one.key) == (Spot(name), "")
