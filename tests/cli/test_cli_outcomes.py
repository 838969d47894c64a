"""Every way in which a command can end, its exit code, and which stream says what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.stub_pipeline import Pipeline, Planner
from planner.errors import NoFeasiblePlan, NoPlanInTime, Problem, SpecError

PLAN = ("plan", "1x8:h100-sxm-80gb", "model_specs/llama-3-8b.json")
PREDICT = ("predict", "1x8:h100-sxm-80gb", "model_specs/llama-3-8b.json")


def test_a_plan_is_printed(run: Planner, pipeline: Pipeline) -> None:
    """A plan ends with 0, on standard output alone."""
    done = run(*PLAN)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "pp 1, dp 1, tp 8" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next:")
    assert pipeline.references == [True]


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (SpecError.of("cluster.yaml:3 name", "is missing"), 2, "planner: cluster.yaml:3 name: is missing"),
        (NoFeasiblePlan("memory binds", {"memory": 7}), 3, "no feasible plan: memory binds"),
        (NoPlanInTime("10 s are over", 1.5), 4, "10 s are over; none can be faster than 1.50 s"),
        (KeyboardInterrupt(), 130, "planner: interrupted"),
        (ZeroDivisionError("division by zero"), 70, "this is a bug in the planner (ZeroDivisionError: division by"),
        (AssertionError(), 70, "this is a bug in the planner (AssertionError)"),
    ],
)
def test_failures_have_their_exit_code(
    run: Planner, pipeline: Pipeline, failure: BaseException, code: int, says: str
) -> None:
    """What failed is told in one place, standard error, without a traceback; standard output stays empty."""
    pipeline.failure = failure
    done = run(*PLAN)
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_shows_its_traceback_when_asked(
    run: Planner, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PLANNER_DEBUG=1 is for those who report it."""
    pipeline.failure = ZeroDivisionError("here")
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    done = run(*PLAN)
    assert done.exit_code == 70
    assert "Traceback" in done.stderr


def test_a_reader_that_has_gone_is_no_failure(
    run: Planner, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`planner plan ... | head -1` ends quietly."""
    silenced: list[bool] = []
    monkeypatch.setattr("planner.cli.command.silence", lambda: silenced.append(True))
    pipeline.failure = BrokenPipeError()
    done = run(*PLAN)
    assert (done.exit_code, done.output, silenced) == (0, "", [True])


def test_no_plan_is_a_document_for_programs(run: Planner, pipeline: Pipeline) -> None:
    """With --format json why there is no plan is JSON, and the exit code is the same."""
    pipeline.failure = NoFeasiblePlan("memory binds", {"memory": 7})
    done = run(*PLAN, "--format", "json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["rejections"] == [{"count": 7, "reason": "memory"}]


def test_an_interrupted_search_prints_its_best_plan(run: Planner, pipeline: Pipeline) -> None:
    """The plan is printed, its status says so, the exit code is 130, and the file is left as it was."""
    Path("plan.yaml").write_text("before", encoding="utf-8")
    pipeline.status = "interrupted"
    done = run(*PLAN, "-o", "plan.yaml", "--format", "json")
    assert done.exit_code == 130
    assert json.loads(done.stdout)["status"] == "interrupted"
    assert "plan.yaml is left as it was" in done.stderr
    assert Path("plan.yaml").read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--global-batch", "0"), "--global-batch: should be at least 1, not 0"),
        (("--global-batch", "1.5"), "--global-batch: should be a whole number, not 1.5"),
        (("--global-batch", "many"), "--global-batch: should be a whole number, not 'many'"),
        (("--global-batch-tokens", "-1"), "--global-batch-tokens: should be at least 1, not -1"),
        (("--sequence-length", "nan"), "--sequence-length: should be a"),
        (("--headroom", "nan"), "--headroom: should be"),
        (("--headroom", "100%"), "--headroom: should be less than 1.0"),
        (("--gap", "-0.1"), "--gap: should be at least 0.0, not -0.1"),
        (("--time-limit", "inf"), "--time-limit: should be a finite number, not inf"),
        (("--total-tokens", "0"), "--total-tokens: should be more than 0"),
        (("--precision", "fp12"), "--precision: should be"),
        (("--precision", "nvfp4"), "nvfp4 is not what h100-sxm-80gb (group h100-sxm-80gb) can do"),
        (("--precision", "mxfp8"), "mxfp8 is not what h100-sxm-80gb"),
        (("--optimizer", "adam-8bits"), "did you mean adam-8bit"),
        (("--framework", "megatorn"), "did you mean megatron"),
        (("-c", "tp <= 0"), "--constraint: 'tp <= 0'"),
        (("--job", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("-o", "no/such/plan.yaml"), "no/such/plan.yaml: there is no folder no/such"),
        (("-o", "model_specs"), "model_specs: is a folder"),
        (("--format", "xml"), "xml"),
        (("--nonsense",), "No such option"),
    ],
)
def test_wrong_options_end_with_two(run: Planner, pipeline: Pipeline, options: tuple[str, ...], says: str) -> None:
    """A wrong value is named with its option and what would be right; nothing is searched."""
    done = run(*PLAN, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert pipeline.jobs == []


def test_all_wrong_inputs_are_told_at_once(run: Planner, pipeline: Pipeline) -> None:
    """A wrong cluster and a wrong model are two problems of one run."""
    done = run("plan", "8x8:h100-sxm-80bg", "nowhere.json")
    assert done.exit_code == 2
    assert "did you mean h100-sxm-80gb" in done.stderr
    assert "nowhere.json: no such file" in done.stderr


def test_standard_input_is_read_once(run: Planner, pipeline: Pipeline) -> None:
    """Cluster and model cannot both be -."""
    done = run("plan", "-", "-")
    assert done.exit_code == 2
    assert "only one of the inputs can be `-`" in done.stderr


def test_options_reach_the_job(run: Planner, pipeline: Pipeline) -> None:
    """Each option sets its key of the job, percentages and exponents included."""
    options = "--global-batch 64 --sequence-length 2048 --precision fp16 --headroom 5% --gap 0.02 --time-limit 9"
    more = "--total-tokens 1.5e12 -c tp<=4 -c pp=1 --framework torchtitan --optimizer muon --no-references"
    done = run(*PLAN, *options.split(), *more.split())
    assert done.exit_code == 0, done.stderr
    job = pipeline.jobs[0]
    assert (job.global_batch, job.sequence, job.precision, job.headroom, job.gap) == (64, 2048, "fp16", 0.05, 0.02)
    assert (job.time_limit, job.total_tokens, job.framework) == (9, 1.5e12, "torchtitan")
    assert job.optimizer is not None
    assert job.optimizer.name == "muon"
    assert [constraint.text for constraint in job.constraints] == ["tp<=4", "pp=1"]
    assert pipeline.references == [False]


def test_for_restricts_and_sets_the_profile(run: Planner, pipeline: Pipeline) -> None:
    """--for names what must run the plan, and whose costs count."""
    run(*PLAN, "--for", "torchtitan", "--global-batch-tokens", "4e6")
    assert (pipeline.jobs[0].target, pipeline.jobs[0].framework) == ("torchtitan", "torchtitan")
    assert pipeline.jobs[0].global_batch == 4_000_000 // 4096


def test_the_plan_file_is_printed_alone(run: Planner, pipeline: Pipeline) -> None:
    """-o - prints the plan file and nothing else, as YAML or as JSON."""
    assert run(*PLAN, "-o", "-").stdout.startswith("format_version:")
    assert json.loads(run(*PLAN, "-o", "-", "--format", "json").stdout)["format_version"] == "1.0"


def test_a_name_that_ends_in_json_is_json(run: Planner, pipeline: Pipeline) -> None:
    """The plan file's format is that of its name."""
    assert run(*PLAN, "-o", "plan.json").exit_code == 0
    assert json.loads(Path("plan.json").read_text(encoding="utf-8"))["plan"]["num_replicas"] == 1


def test_a_layout_that_does_not_fit_is_an_answer(run: Planner, pipeline: Pipeline) -> None:
    """Exit 0, fits is false, and the problems stand in the document."""
    pipeline.problems = (Problem("stages[0]", "needs more"),)
    done = run(*PREDICT, "--layout", "tp=1,gbs=8,seq=4096", "--format", "json")
    assert done.exit_code == 0
    value = json.loads(done.stdout)
    assert value["prediction"]["fits"] is False
    assert value["problems"] == [{"message": "needs more", "place": "stages[0]"}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (PREDICT, "give either --layout"),
        ((*PREDICT, "--layout", "tp=2", "--plan", "p.yaml"), "give either --layout"),
        (("predict", "--layout", "tp=2"), "needs CLUSTER and MODEL"),
        ((*PREDICT, "--layout", "tq=2"), "--layout: unknown key tq"),
        ((*PREDICT, "--layout", "tp=0,pp=x"), "--layout: tp=0 should be a whole number"),
        ((*PREDICT, "--layout", "gbs=8", "--global-batch", "9"), "gbs=8 and --global-batch says 9; keep one"),
        (("predict", "--plan", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("explain", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("schema", "modle"), "did you mean model"),
        (("show", "cluster", "8x8:nothing"), "no device is called 'nothing'"),
        (("show", "model", "nowhere"), "nowhere: no such file"),
        (
            ("show", "model", "model_specs/gpt2.json", "--sequence-length", "0"),
            "should be a whole number of at least 1",
        ),
        (("show", "frameworks", "megatorn"), "did you mean megatron"),
        (("show", "optimizers", "adam-8bits"), "did you mean adam-8bit"),
        (("import", "model", "nowhere"), "nowhere: no such file"),
        (("nonsense",), "No such command"),
    ],
)
def test_wrong_usage_ends_with_two(run: Planner, pipeline: Pipeline, arguments: tuple[str, ...], says: str) -> None:
    """Every command refuses wrong input with 2 and says what would be right."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_layout_sets_batch_and_sequence(run: Planner, pipeline: Pipeline) -> None:
    """The layout's gbs and seq are the job's, and no defaults."""
    done = run(*PREDICT, "--layout", "tp=8,gbs=32,seq=2048,framework=torchtitan")
    assert done.exit_code == 0, done.stderr
    assert (pipeline.jobs[0].global_batch, pipeline.jobs[0].sequence) == (32, 2048)
    assert pipeline.jobs[0].framework == "torchtitan"
    assert "32 x 2,048 tokens" in done.stdout


def test_a_plan_file_is_predicted_again(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """The plan's own job counts unless another is given; on a slower cluster of the same shape it takes longer."""
    own = run("predict", "--plan", plan_file, "--format", "json")
    text = Path("plan.yaml").read_text(encoding="utf-8")
    start = text.index("cluster:")
    slower = text[start : text.index("\nmodel:")].replace("bf16_tflops: 989.4", "bf16_tflops: 500.0")
    lines = [line[2:] for line in slower.splitlines()[1:]]
    Path("slower.yaml").write_text("\n".join(lines), encoding="utf-8")
    other = run("predict", "slower.yaml", "--plan", plan_file, "--format", "json")
    times = [json.loads(done.stdout)["prediction"]["step_time_s"] for done in (own, other)]
    assert times[1] > times[0]
    pipeline.jobs.clear()
    run("predict", "--plan", plan_file)
    run("predict", "--plan", plan_file, "--headroom", "20%")
    assert [job.headroom for job in pipeline.jobs] == [0.1, 0.2]


def test_good_plans_end_with_zero(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """A good plan says so, with its notes."""
    pipeline.notes = ("the recorded step time differs by 3%",)
    done = run("check", plan_file, plan_file)
    assert done.exit_code == 0
    assert done.stdout.count("plan.yaml: good") == 2
    assert "note:" in done.stdout


def test_a_plan_with_problems_ends_with_one(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """Problems of a plan are results."""
    pipeline.problems = (Problem("stages[0]", "needs 9 GiB more"),)
    done = run("check", plan_file)
    assert done.exit_code == 1
    assert "plan.yaml: 1 problem\n  - stages[0]: needs 9 GiB more" in done.stdout


def test_one_bad_file_does_not_stop_the_rest(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """The others are judged all the same, and the exit code is that of the worst."""
    done = run("check", "nowhere.yaml", plan_file)
    assert done.exit_code == 2
    assert "nowhere.yaml: no such file" in done.stderr
    assert "plan.yaml: good" in done.stdout
    files = json.loads(run("check", "nowhere.yaml", plan_file, "--format", "json").stdout)["files"]
    assert [(one["file"], one["readable"], one["good"]) for one in files] == [
        ("nowhere.yaml", False, False),
        ("plan.yaml", True, True),
    ]


def test_an_edited_plan_is_noted(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """That the job was changed by hand is the pipeline's to find; the command line prints its notes."""
    pipeline.notes = ("job was changed after the plan was made",)
    assert "job was changed after the plan was made" in run("check", plan_file).stdout


def test_a_plan_is_explained(run: Planner, pipeline: Pipeline, plan_file: str) -> None:
    """What binds and what was rejected; a question why not is answered."""
    done = run("explain", plan_file)
    assert done.exit_code == 0, done.stderr
    assert "what binds" in done.stdout
    assert "candidates that were rejected" in done.stdout
    assert "no plan is possible: nothing fits llama-3-8b" in run("explain", plan_file, "--why-not", "tp=8").stdout
    assert run("explain", plan_file, "--why-not", "tq=8").exit_code == 2
    value = json.loads(run("explain", plan_file, "--why-not", "tp=8", "--no-search", "--format", "json").stdout)
    assert value["why_not"][0]["constraint"] == "tp=8"


def test_a_plan_can_be_checked_at_another_headroom(run: Planner, plan_file: str) -> None:
    """The limit is that of --headroom; a plan that no longer fits names a repair, one that is nearly full is warned of.

    The stub has no checks: exit code and problems are those of other tests.
    """

    def judged(share: str) -> dict[str, object]:
        file: dict[str, object] = json.loads(run("check", plan_file, "--headroom", share, "--format", "json").stdout)[
            "files"
        ][0]
        return file

    loose, tight = judged("10%"), judged("0.9")
    assert (loose["repairs"], loose["warnings"]) == ([], [])
    assert [repair["change"] for repair in tight["repairs"]] == ["micro-batch 1"]  # type: ignore[attr-defined]
    stages = [file["prediction"]["stages"][0] for file in (loose, tight)]  # type: ignore[index]
    assert stages[1]["memory_limit_bytes"] == pytest.approx(stages[0]["memory_limit_bytes"] / 9)
    text = run("check", plan_file, "--headroom", "0.9").stdout
    assert "what would help, cheapest first" in text
    assert "+25.0%" in text
    assert run("check", plan_file, "--headroom", "2").exit_code == 2


def test_what_plan_prints_can_be_checked(run: Planner, pipeline: Pipeline) -> None:
    """`planner plan --format json | planner check -` works, and so does YAML."""
    for form in ("json", "yaml"):
        printed = run(*PLAN, "--format", form).stdout
        done = run("check", "-", stdin=printed)
        assert done.exit_code == 0, done.output


def test_specs_are_shown_and_imported(run: Planner) -> None:
    """What show and import print as YAML is read back."""
    shown = run("show", "cluster", "2x8:h100-sxm-80gb", "--format", "yaml")
    assert run("show", "cluster", "-", stdin=shown.stdout).exit_code == 0
    imported = run("import", "model", "model_specs/llama-3-8b.json")
    assert "8,030,261,248" in run("show", "model", "-", stdin=imported.stdout).stdout
    assert run("import", "model", "model_specs/llama-3-8b.json", "-o", "m.yaml").stdout == ""
    assert Path("m.yaml").read_text(encoding="utf-8") == imported.stdout
    assert json.loads(run("show", "devices", "--format", "json").stdout)["devices"]
    assert json.loads(run("show", "frameworks", "--format", "json").stdout)["frameworks"]
    assert json.loads(run("show", "optimizers", "--format", "json").stdout)["optimizers"]
    assert "Moonlight" in run("show", "optimizers", "muon").stdout


@pytest.mark.parametrize("kind", ["cluster", "model", "job", "plan"])
def test_schemas_are_printed(run: Planner, kind: str) -> None:
    """Each kind of spec has a JSON Schema."""
    assert json.loads(run("schema", kind).stdout)["$schema"].startswith("https://json-schema.org/")
