"""The real command line with the real pipeline: what one command writes, the next one reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import transcripts

PLANNER = "python -m planner"
SMALL = "1x4:h100-sxm-80gb model_specs/llama-3-8b.json --global-batch 16 --no-references"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that looks like the repository, with a plan in it."""
    directory = transcripts.scratch(tmp_path_factory.mktemp("end-to-end"))
    done = transcripts.run(f"{PLANNER} plan {SMALL} -o plan.yaml --format json > plan.json", directory)
    assert (done.code, done.stderr) == (0, "")
    return directory


def document(folder: Path, command: str) -> Any:
    done = transcripts.run(f"{PLANNER} {command} --format json", folder)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_proof_holds(folder: Path) -> None:
    """Bound <= objective, the gap is theirs and within the wanted 1%, and nothing is over its memory limit."""
    value = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    certificate, prediction = value["certificate"], value["prediction"]
    assert value["status"] in {"optimal", "within_gap"}
    assert certificate["lower_bound_s"] <= certificate["objective_s"]
    gap = 1 - certificate["lower_bound_s"] / certificate["objective_s"]
    assert certificate["gap"] == pytest.approx(gap, abs=1e-9)
    assert gap <= 0.01
    assert certificate["replay_lower_bound_s"] <= prediction["step_time_s"]
    assert prediction["fits"]
    assert all(stage["peak_memory_bytes"] <= stage["memory_limit_bytes"] for stage in prediction["stages"])


def test_a_constraint_never_makes_a_plan_better(folder: Path) -> None:
    """What recompute is worth depends on the kernels of the framework, not on what the device could run."""
    asked = "plan 1x8:a100-sxm-80gb model_specs/llama-2-7b.json --global-batch 64 --sequence-length 16384"
    asked += " --for megatron-deepspeed --no-references"
    free, selective = (document(folder, f"{asked} {more}") for more in ("", "-c 'recompute: selective'"))
    assert free["prediction"]["step_time_s"] <= selective["prediction"]["step_time_s"]
    assert free["certificate"]["lower_bound_s"] <= selective["certificate"]["objective_s"]


def test_a_plan_is_good_and_predicted_the_same(folder: Path) -> None:
    """Check finds nothing wrong with what plan wrote, in either format; predict says the same time."""
    done = transcripts.run(f"{PLANNER} check plan.yaml plan.json", folder)
    assert (done.code, done.stderr) == (0, "")
    assert "note" not in done.stdout
    planned = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["prediction"]["step_time_s"]
    assert document(folder, "predict --plan plan.yaml")["prediction"]["step_time_s"] == planned


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
def test_an_export_for_unlike_nodes_is_checked_as_it_was_planned(folder: Path, launcher: str) -> None:
    """Its first stages run on the group that the cluster names last, and the launch script says so."""
    cluster = "2x4:v100-sxm-32gb+1x4:a100-sxm-80gb"
    asked = f"plan {cluster} model_specs/llama-3.2-3b.json --global-batch 64 --sequence-length 2048 --for megatron"
    planned = document(folder, f"{asked} --no-references -o mixed.yaml")
    stages = planned["plan"]["plan"]["stages"]
    assert [stage["group"] for stage in stages] == ["a100-sxm-80gb", "v100-sxm-32gb", "v100-sxm-32gb"]
    done = transcripts.run(f"{PLANNER} export mixed.yaml --to {launcher} -o {launcher}.sh", folder)
    assert (done.code, done.stderr) == (0, "")
    (found,) = document(folder, f"check {launcher}.sh --cluster {cluster} --no-search")["files"]
    assert found["prediction"]["step_time_s"] == planned["prediction"]["step_time_s"]


def test_a_changed_plan_is_found_out(folder: Path) -> None:
    """A plan whose layers were changed by hand, or whose cluster is too small, has problems: exit 1."""
    text = (folder / "plan.yaml").read_text(encoding="utf-8")
    assert "31]" in text
    (folder / "wrong.yaml").write_text(text.replace("31]", "30]", 1), encoding="utf-8")
    done = transcripts.run(f"{PLANNER} check wrong.yaml", folder)
    assert done.code == 1
    assert "must be 31" in done.stdout
    assert transcripts.run(f"{PLANNER} check plan.yaml --cluster 1x1:h100-sxm-80gb", folder).code == 1


def test_a_question_why_not_is_answered(folder: Path) -> None:
    """Another tensor degree is slower, or no plan at all."""
    value = json.loads(transcripts.run(f"{PLANNER} explain plan.yaml --why-not pp=4 --format json", folder).stdout)
    answer = value["why_not"][0]
    assert answer["infeasible"] or answer["slower_by"] > -0.01


def test_what_cannot_fit_says_what_would_help(folder: Path) -> None:
    """An 8B model on a device of 16 GiB: exit 3, by how much it misses, and a change that would make it fit."""
    done = transcripts.run(f"{PLANNER} plan 1x1:v100-sxm-16gb model_specs/llama-3-8b.json --global-batch 1", folder)
    assert (done.code, done.stdout) == (3, "")
    assert "no feasible plan" in done.stderr
    assert "misses" in done.stderr
    assert "what would help" in done.stderr


def test_a_plan_that_its_target_cannot_write_is_told(folder: Path) -> None:
    """The framework can run it, its configuration has no words for it: a note, and no failure."""
    small = f"{PLANNER} plan 1x4:h100-sxm-80gb model_specs/%s --global-batch 16 --no-references --for torchtitan"
    done = transcripts.run(small % "gpt2.json", folder)
    assert done.code == 0
    first, module, toml = done.stderr.splitlines()
    assert first == "note: no export for torchtitan can write this plan"
    assert module.startswith("note: --to torchtitan: torchtitan has no model of the sizes of gpt2")
    # What the other target refuses, too, is no remedy.
    assert toml == "note: --to torchtitan-0.2: torchtitan 0.2 has no model of the sizes of gpt2"
    assert transcripts.run(small % "llama-3-8b.json", folder).stderr == ""
