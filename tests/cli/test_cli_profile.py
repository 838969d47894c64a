"""Measured layers from the cluster file to the plan file, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import transcripts

MEASURED = "cluster_specs/profiled-a100-v100.yaml model_specs/opt-350m.yaml"
JOB = "--precision fp32 --global-batch 64"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return transcripts.scratch(tmp_path)


def test_a_plan_of_measured_layers_needs_nothing_but_its_file(folder: Path) -> None:
    """The plan's time is measured; its file is judged good where neither cluster file nor CSV can be seen."""
    done = transcripts.run(f"planner plan {MEASURED} {JOB} --no-references -o plan.yaml --format json", folder)
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"measured", "step_overhead"} <= set(found["prediction"]["time"])
    assert not {"matmul", "attention", "elementwise", "tensor_collectives", "launch"} & set(found["prediction"]["time"])
    assert any("not measured on v100" in row["reason"] for row in found["search"]["rejections"])
    alone = folder / "alone"
    alone.mkdir()
    (folder / "plan.yaml").rename(alone / "plan.yaml")
    judged = transcripts.run("planner check plan.yaml --format json", alone)
    assert judged.code == 0, judged.stderr
    (file,) = json.loads(judged.stdout)["files"]
    assert file["notes"] == []
    assert file["prediction"]["step_time_s"] == found["prediction"]["step_time_s"]


def test_a_changed_time_is_seen(folder: Path) -> None:
    """The digest of the cluster covers the times."""
    done = transcripts.run(f"planner plan {MEASURED} {JOB} --gap 0.3 --no-references -o plan.json", folder)
    assert done.code == 0, done.stderr
    file = json.loads((folder / "plan.json").read_text())
    file["cluster"]["groups"][0]["profile"]["rows"][0]["body_s"][0] *= 2
    (folder / "plan.json").write_text(json.dumps(file))
    judged = transcripts.run("planner check plan.json", folder)
    assert "cluster was changed after the plan was made" in judged.stdout


def test_what_was_not_measured_is_not_predicted(folder: Path) -> None:
    """A micro-batch of 16 was not measured on either group, one of 8 not at tp 1 on V100; 4 was on both."""
    layout = "planner predict {} {} --layout pp=2,{}"
    done = transcripts.run(layout.format(MEASURED, JOB, "dp=2,tp=4,mbs=16"), folder)
    assert (done.code, done.stdout) == (2, "")
    assert (
        "stages[0].strategy: is tp=4 micro-batch=16 not measured on a100, which has tp=1 micro-batch=1/2/4/8"
        in done.stderr
    )
    assert (
        "stages[1].strategy: is tp=4 micro-batch=16 not measured on v100, which has tp=1 micro-batch=1/2/4, "
        in done.stderr
    )
    done = transcripts.run(layout.format(MEASURED, JOB, "dp=8,mbs=8"), folder)
    assert done.code == 2
    assert "a100" not in done.stderr
    done = transcripts.run(layout.format(MEASURED, JOB, "dp=8,mbs=4"), folder)
    assert done.code == 0, done.stderr


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("", "group a100 profile.precision: is fp32, where the job has fp16; write --precision fp32"),
        (f"{JOB} --sequence-length 1024", "profile.sequence: is 2048, where the job has 1024; write --sequence-length"),
    ],
)
@pytest.mark.parametrize("command", ["plan {} {} --no-references", "predict {} {} --layout pp=2"])
def test_another_job_is_refused_with_the_remedy(folder: Path, command: str, job: str, says: str) -> None:
    """Plan and predict end with 2 where the job is not what was measured."""
    done = transcripts.run(f"planner {command.format(MEASURED, job)}", folder)
    assert (done.code, done.stdout) == (2, "")
    assert says in done.stderr


def test_another_model_is_refused(folder: Path) -> None:
    """GPT-2 has 12 layers of 768 channels, where 24 of 1,024 were measured."""
    command = "planner plan cluster_specs/profiled-a100-v100.yaml model_specs/gpt2.json --precision fp32"
    done = transcripts.run(command, folder)
    assert done.code == 2
    assert "profile.layers: is 24, where gpt2 has 12; plan the model that was measured" in done.stderr
    assert "profile.hidden_size: is 1024, where gpt2 has 768" in done.stderr


def test_a_batch_of_which_nothing_was_measured_has_no_plan(folder: Path) -> None:
    """No micro-batch of 16 was measured: that there is no plan is proved, and the message says why."""
    done = transcripts.run(f"planner plan {MEASURED} {JOB} --no-references -c 'micro_batch = 16'", folder)
    assert done.code == 3
    assert "profiles have no layers but those that were measured" in done.stderr.replace("\n", " ")
    assert "tp=1 micro-batch=16 not measured on a100" in done.stderr


def test_the_cluster_shows_what_was_measured(folder: Path) -> None:
    """Rates with their scale, and the layers with their tensor degrees and micro-batches."""
    done = transcripts.run("planner show cluster cluster_specs/profiled-a100-v100.yaml", folder)
    assert "measured a100: nvlink3 249 GB/s on 2 devices" in done.stdout
    assert "measured v100: cloud 4.61 GB/s on 2 nodes" in done.stdout
    assert "a100: 24 layers at 2,048 tokens in fp32, tp 1 micro-batch 1/2/4/8" in done.stdout
