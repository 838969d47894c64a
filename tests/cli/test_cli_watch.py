"""``planner plan --watch``: what is shown when a file changes, and how it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from cli.stub_pipeline import Pipeline, Planner
from planner.cli.files import Files, FilesChanged
from planner.errors import NoFeasiblePlan, NoPlanInTime, SpecError
from planner.specs.plan import parsed_plan

Edit = Callable[[], object]
Watch = Callable[..., Result]

MODEL = "model_specs/llama-3-8b.json"


def devices(number: int) -> None:
    """Write a cluster of one node with so many devices."""
    text = f"groups:\n  - {{device: h100-sxm-80gb, nodes: 1, devices_per_node: {number}}}\n"
    Path("cluster.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def watch(run: Planner, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a function that watches cluster.yaml, makes an edit each time the next is awaited, and then interrupts."""
    devices(8)
    wait = Files.wait

    def watch_(*edits: Edit, options: tuple[str, ...] = (), model: str = MODEL) -> Result:
        waiting = iter(edits)

        def edited(files: Files) -> tuple[str, ...]:
            edit = next(waiting, None)
            if edit is None:
                raise KeyboardInterrupt
            edit()
            return wait(files, lambda _: None)

        monkeypatch.setattr(Files, "wait", edited)
        done = run("plan", "cluster.yaml", model, "--watch", *options)
        assert next(waiting, None) is None
        return done

    return watch_


def devices_planned(text: str) -> list[str]:
    return [line.split(", ")[1].split(" (")[0] for line in text.splitlines() if line.startswith("cluster ")]


def test_a_change_is_planned_again(watch: Watch, pipeline: Pipeline) -> None:
    """Each plan is printed below the last where standard output is a file; 130 is how a watch ends."""
    done = watch(lambda: devices(4), lambda: devices(2))
    assert done.exit_code == 130
    assert devices_planned(done.stdout) == ["8 devices", "4 devices", "2 devices"]
    assert "\n\ncluster " in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr.splitlines()[-1] == "planner: interrupted"


def test_what_changed_is_said_and_how_the_plan_moved(watch: Watch) -> None:
    """The file, the step times, and what is decided otherwise: standard error says it, the report being a result."""
    done = watch(lambda: devices(4))
    watching = f"planner: watching {MODEL}, cluster.yaml; Ctrl-C ends it"
    first, changed, moved, second, _ = done.stderr.splitlines()
    assert (first, second, changed) == (watching, watching, "planner: cluster.yaml changed")
    before, after = (line.split()[1] for line in done.stdout.splitlines() if line.startswith("step  "))
    assert moved.startswith(f"planner: step time {before} s -> {after} s (+")
    assert moved.endswith("; devices 8 x h100-sxm-80gb -> 4 x h100-sxm-80gb; tp 8...")


def test_a_change_that_moves_nothing_is_said_to(watch: Watch) -> None:
    """A comment is a change of the file, not of the plan."""

    def comment() -> None:
        path = Path("cluster.yaml")
        path.write_text("# ours\n" + path.read_text(encoding="utf-8"), encoding="utf-8")

    assert "(+0.0%); the decision is the same\n" in watch(comment).stderr


def test_a_broken_file_is_told_and_watched_on(watch: Watch, pipeline: Pipeline) -> None:
    """Its problems are said, the plan file stays as it was, and the next plan is compared with the last good one."""
    seen: list[str] = []

    def broken() -> None:
        Path("cluster.yaml").write_text("groups: [\n", encoding="utf-8")

    def mended() -> None:
        seen.append(Path("plan.yaml").read_text(encoding="utf-8"))
        devices(4)

    done = watch(broken, mended, options=("-o", "plan.yaml"))
    assert len(pipeline.jobs) == 2
    assert "planner: cluster.yaml:1: is not valid YAML" in done.stderr
    assert "planner: plan.yaml is left as it was\n" in done.stderr
    assert "devices 8 x h100-sxm-80gb -> 4 x h100-sxm-80gb" in done.stderr
    written = (*seen, Path("plan.yaml").read_text(encoding="utf-8"))
    assert [parsed_plan(text, "plan.yaml").plan.num_devices for text in written] == [8, 4]


def test_a_file_that_was_never_right_is_watched(watch: Watch, pipeline: Pipeline) -> None:
    """A watch may begin before the files are finished, or there."""
    Path("cluster.yaml").unlink()
    done = watch(lambda: devices(4))
    assert "planner: cluster.yaml: no such file" in done.stderr
    assert devices_planned(done.stdout) == ["4 devices"]


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (NoFeasiblePlan("memory binds", {"memory": 7}), "no feasible plan: memory binds"),
        (NoPlanInTime("10 s are over", 1.5), "10 s are over; none can be faster than 1.50 s"),
        (SpecError.of("cluster.yaml:3 groups[0].profile", "is of another model"), "groups[0].profile: is of another"),
    ],
)
def test_that_there_is_no_plan_is_told_and_watched_on(
    watch: Watch, pipeline: Pipeline, failure: Exception, says: str
) -> None:
    """A change may well make a plan possible."""
    pipeline.failure = failure

    def better() -> None:
        pipeline.failure = None
        devices(4)

    done = watch(better)
    assert done.exit_code == 130
    assert says in done.stderr
    assert devices_planned(done.stdout) == ["4 devices"]


def test_documents_follow_one_another(watch: Watch, pipeline: Pipeline) -> None:
    """JSON is a stream of documents, as `jq` reads them; that there is no plan is one of them."""

    def impossible() -> None:
        pipeline.failure = NoFeasiblePlan("memory binds", {"memory": 7})
        devices(4)

    text = watch(impossible, options=("--format", "json")).stdout
    decoder, documents, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        document, end = decoder.raw_decode(text[at:].lstrip())
        at += end + len(text[at:]) - len(text[at:].lstrip())
        documents.append(document)
    assert [one["status"] for one in documents] == ["optimal", "infeasible"]


def test_yaml_documents_are_told_apart(watch: Watch) -> None:
    """Each begins with the three dashes of YAML."""
    text = watch(lambda: devices(4), options=("--format", "yaml")).stdout
    assert text.startswith("---\n")
    assert [one["status"] for one in yaml.safe_load_all(text)] == ["optimal", "optimal"]


def test_a_search_is_given_up_when_a_file_changes(
    watch: Watch, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is shown or written; the new files are planned at once, without waiting for a further change."""
    make_plan = pipeline.make_plan

    def changed_once(*arguments: Any, **options: Any) -> Any:
        if not pipeline.jobs:
            pipeline.jobs.append(arguments[2])
            devices(4)
            raise FilesChanged(["cluster.yaml"])
        return make_plan(*arguments, **options)

    monkeypatch.setattr(pipeline, "make_plan", changed_once)
    done = watch(options=("-o", "plan.yaml"))
    assert devices_planned(done.stdout) == ["4 devices"]
    assert done.stderr.startswith("planner: cluster.yaml changed\nplanner: watching ")


def test_an_interrupted_search_ends_the_watch(watch: Watch, pipeline: Pipeline) -> None:
    """As without --watch the best plan so far is printed, and the plan file left as it was."""
    pipeline.status = "interrupted"
    done = watch(options=("-o", "plan.yaml"))
    assert done.exit_code == 130
    assert devices_planned(done.stdout) == ["8 devices"]
    assert done.stderr == "planner: interrupted, this is the best plan so far; plan.yaml is left as it was\n"
    assert not Path("plan.yaml").exists()


def test_an_interrupt_of_what_is_optional_ends_the_watch(
    watch: Watch, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted, the pipeline gives references up and returns its plan: it is shown, and the watch ends."""
    make_plan = pipeline.make_plan

    def interrupted(*arguments: Any, **options: Any) -> Any:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return make_plan(*arguments, **options)

    monkeypatch.setattr(pipeline, "make_plan", interrupted)
    done = watch()
    assert (done.exit_code, done.stderr) == (130, "planner: interrupted\n")
    assert devices_planned(done.stdout) == ["8 devices"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_files_of_all_kinds_are_watched(run: Planner, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration in a model's folder, the job, a plan to plan like, and the profiles that a cluster names."""
    watched: list[tuple[str, ...]] = []

    def end(files: Files) -> tuple[str, ...]:
        watched.append(files.names)
        raise KeyboardInterrupt

    monkeypatch.setattr(Files, "wait", end)
    Path("llama").mkdir()
    Path("llama/config.json").write_bytes(Path(MODEL).read_bytes())
    Path("job.yaml").write_text("global_batch: 64\n", encoding="utf-8")
    assert run("plan", "1x8:h100-sxm-80gb", "llama", "--job", "job.yaml", "--watch").exit_code == 130
    assert run("plan", "1x8:h100-sxm-80gb", MODEL, "-o", "plan.yaml").exit_code == 0
    assert run("plan", "--like", "plan.yaml", "--cluster", "1x4:h100-sxm-80gb", "--watch").exit_code == 130
    run("plan", "cluster_specs/profiled-a100-v100.yaml", MODEL, "--watch")
    assert watched[:2] == [("llama/config.json", "llama", "job.yaml"), ("plan.yaml",)]
    profiles = {name for name in watched[2] if name.endswith(".csv")}
    assert watched[2][:2] == (MODEL, "cluster_specs/profiled-a100-v100.yaml")
    assert profiles
    assert all(Path(name).is_file() for name in profiles)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-", MODEL), "--watch: `-` is read once and cannot be watched; save what it gives to a file"),
        (("cluster.yaml", "-"), "--watch: `-` is read once"),
        (("cluster.yaml", MODEL, "--job", "-"), "--watch: `-` is read once"),
        (("--like", "-", "--cluster", "cluster.yaml"), "--watch: `-` is read once"),
        (("cluster.yaml", "/dev/null"), "--watch: `/dev/null` is read once"),
        (("cluster.yaml", MODEL, "-o", "-"), "--output: - cannot hold plan after plan"),
        (("cluster.yaml", MODEL, "-o", "./cluster.yaml"), "--output: cluster.yaml is watched"),
        (("cluster.yaml", MODEL, "--gap", "x"), "--gap: should be a number"),
        (("cluster.yaml", MODEL, "-o", "no/plan.yaml"), "no/plan.yaml: there is no folder no"),
        ((), "give CLUSTER and MODEL"),
    ],
)
def test_what_cannot_be_watched_ends_with_two(
    run: Planner, pipeline: Pipeline, words: tuple[str, ...], says: str
) -> None:
    """What no change of a file could mend is refused at once, with what would do."""
    devices(8)
    done = run("plan", *words, "--watch")
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert pipeline.jobs == []
