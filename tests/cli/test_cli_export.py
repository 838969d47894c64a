"""``planner export``: where it writes, in which form, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cli.stub_pipeline import Planner
from planner.domain.plan import Plan, Stage, Strategy
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.model import read_model
from planner.specs.plan import plan_record

Write = Callable[[Plan], str]


def stage(group: str, first: int, last: int, tp: int = 1) -> Stage:
    return Stage(group=group, first_layer=first, last_layer=last, strategy=Strategy(degrees=(("tp", tp),)))


MIXED = Plan(
    stages=(stage("rtx3080", 0, 4), stage("rtx4090", 5, 11)),
    schedule="1f1b",
    num_replicas=4,
    micro_batch=4,
    num_microbatches=4,
    zero_stage=1,
)
TORN = replace(
    MIXED,
    stages=(stage("rtx3080", 0, 3, tp=2), stage("rtx3080", 4, 7, tp=2), stage("rtx4090", 8, 11, tp=2)),
    num_replicas=1,
)
"""From the first box to the second one and back."""


@pytest.fixture
def write_plan(run: Planner) -> Write:
    """Return a function that writes a plan for the lab's boxes into a file, and returns its name."""
    del run

    def written(plan: Plan) -> str:
        cluster, model = read_cluster("cluster_specs/lab-3080-4090.yaml"), read_model("model_specs/gpt2.json")
        job, _ = read_job(None, {"global_batch": plan.global_batch}, model, cluster)
        Path("plan.json").write_text(json.dumps(plan_record(plan, cluster, model, job)), encoding="utf-8")
        return "plan.json"

    return written


def test_the_text_is_the_targets_own(run: Planner, write_plan: Write) -> None:
    """A rank table is CSV, one line a rank, on standard output alone."""
    done = run("export", write_plan(MIXED), "--to", "rank-table")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("rank,node,local_rank,device_index,device,group,")
    assert len(done.stdout.splitlines()) == 9


def test_data_for_programs(run: Planner, write_plan: Write) -> None:
    """The same as JSON and YAML, where a target has them; where not, that is wrong usage."""
    document = json.loads(run("export", write_plan(MIXED), "--to", "rank-table", "--format", "json").stdout)
    assert document["format_version"] == "1.0"
    assert document["ranks"][1]["node"] == "lab-0"
    assert "rank_order: tp-cp-pp-dp" in run("export", "plan.json", "--to", "rank-table", "--format", "yaml").stdout
    done = run("export", "plan.json", "--to", "hostfile", "--format", "json")
    assert done.exit_code == 2
    assert "hostfile has a form of its own" in done.stderr


def test_a_file_is_written_whole(run: Planner, write_plan: Write) -> None:
    """-o FILE prints nothing, and says where it cannot write."""
    done = run("export", write_plan(MIXED), "--to", "hostfile", "-o", "hosts")
    assert (done.exit_code, done.output) == (0, "")
    assert Path("hosts").read_text(encoding="utf-8").endswith("lab-1 slots=4\n")
    assert run("export", "plan.json", "--to", "hostfile", "-o", "nowhere/hosts").exit_code == 2


def test_a_plan_with_problems_is_not_written(run: Planner, write_plan: Write) -> None:
    """Exit code 1, the problems as `planner check` has them, and the file as it was."""
    Path("hosts").write_text("before", encoding="utf-8")
    torn = replace(MIXED, stages=(stage("rtx3080", 0, 4), stage("rtx4090", 6, 11)))
    done = run("export", write_plan(torn), "--to", "hostfile", "-o", "hosts")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "planner: stages[1].first_layer" in done.stderr
    assert Path("hosts").read_text(encoding="utf-8") == "before"


def test_what_cannot_be_expressed_is_refused(run: Planner, write_plan: Write) -> None:
    """Exit code 5, with the reason and what to do, and no file."""
    done = run("export", write_plan(TORN), "--to", "hostfile", "-o", "hosts")
    assert (done.exit_code, done.stdout) == (5, "")
    assert "planner: --to hostfile: lab-0 has ranks 1 and 4, but none between" in done.stderr
    assert "--to rank-table tells where each rank runs" in done.stderr
    assert not Path("hosts").exists()


def test_an_explanation_states_the_order_of_the_ranks(run: Planner, write_plan: Write) -> None:
    """In one line, with the nodes."""
    done = run("explain", write_plan(MIXED), "--no-search")
    assert "ranks    tp innermost, then pp, then dp: 0-3 on lab-0, 4-7 on lab-1\n" in done.stdout


def test_a_folder_holds_all_that_a_launch_needs(run: Planner, write_plan: Write) -> None:
    """The batch script, which holds the arguments, the ranks and the nodes; each is named when it is written."""
    done = run("export", write_plan(MIXED), "--to", "slurm", "--framework", "megatron", "-o", "job/")
    assert done.exit_code == 0, done.stderr
    assert {path.name for path in Path("job").iterdir()} == {
        "job.sbatch",
        "rank_table.csv",
        "rank_table.json",
        "hostfile",
    }
    assert "wrote job/job.sbatch\n" in done.stderr
    assert "#SBATCH --gres=gpu:rtx3080:2,gpu:rtx4090:2\n" in Path("job/job.sbatch").read_text(encoding="utf-8")


def test_a_framework_comes_with_a_script_that_starts_it(run: Planner, write_plan: Write) -> None:
    """In a folder; it can be executed."""
    assert run("export", write_plan(MIXED), "--to", "megatron", "-o", "job/").exit_code == 0
    script = Path("job/launch.sh")
    assert script.stat().st_mode & 0o111
    assert "export CUDA_VISIBLE_DEVICES=0,2,1,3\n" in script.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "instead"), [("trainjob", "torchrun"), ("skypilot", "slurm")])
def test_a_launcher_refuses_nodes_that_it_has_not(run: Planner, write_plan: Write, name: str, instead: str) -> None:
    """Boxes with two kinds of cards, with the reason and which launcher to take."""
    done = run("export", write_plan(MIXED), "--to", name, "--framework", "megatron")
    assert (done.exit_code, done.stdout) == (5, "")
    assert instead in done.stderr


PLAIN = replace(MIXED, stages=(stage("rtx4090", 0, 11),), num_microbatches=2, zero_stage=0)
"""Data parallelism alone, which nearly every target can say."""
PARTS = {
    "megatron": ["arguments.txt", "environment.env"],
    "megatron-deepspeed": ["arguments.txt", "environment.env", "ds_config.json"],
    "deepspeed": ["ds_config.json", "ds_config_notes.txt"],
    "accelerate": ["accelerate.yaml", "accelerate.sh"],
    "flagscale": ["flagscale.yaml", "hostfile", "flagscale.sh", "rank_table.csv", "rank_table.json"],
    "galvatron": ["galvatron.json", "hostfile", "rank_table.csv", "rank_table.json"],
}


@pytest.mark.parametrize("target", PARTS)
def test_one_file_holds_no_part_of_an_export_in_silence(run: Planner, write_plan: Write, target: str) -> None:
    """Wrong usage, with the others and the remedy, whatever the target; one part is written where it is asked for."""
    first, *others = PARTS[target]
    done = run("export", write_plan(PLAIN), "--to", target, "-o", "run")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--output: run would hold only {first}, which goes with {', '.join(others)}; -o run/ writes" in done.stderr
    assert f"--only {first} this part alone" in done.stderr
    assert not Path("run").exists()
    assert run("export", "plan.json", "--to", target, "--only", first, "-o", "run").output == ""
    printed = run("export", "plan.json", "--to", target)
    assert (printed.exit_code, printed.stdout) == (0, Path("run").read_text(encoding="utf-8"))
    assert f"note: this is {first}, which goes with {', '.join(others)}; -o FOLDER/ writes" in printed.stderr
    assert run("export", "plan.json", "--to", target, "-o", "all/").exit_code == 0
    assert {path.name for path in Path("all").iterdir()} >= set(PARTS[target])


def test_a_folder_that_is_there_needs_no_slash(run: Planner, write_plan: Write) -> None:
    """Then nobody can mean a file."""
    Path("run").mkdir()
    assert run("export", write_plan(PLAIN), "--to", "megatron", "-o", "run").exit_code == 0
    assert {path.name for path in Path("run").iterdir()} > set(PARTS["megatron"])
