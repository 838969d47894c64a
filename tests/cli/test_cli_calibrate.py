"""Cluster files with a calibration: made, changed in few places, read again, and planned with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import transcripts
from calibration.synthetic_runs import shapes, times, written
from cli.stub_pipeline import Planner
from planner.accuracy.runs import read_runs
from planner.accuracy.setting import setting
from planner.loader import load
from planner.pipeline import predict_plan
from planner.pipeline.layout import plan_from_layout
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework
from planner.specs.cluster import cluster_from_record, cluster_record, read_cluster
from planner.specs.layout import parse_layout
from planner.specs.plan import read_plan

TRUTH = {"matmul_efficiency": 0.85, "launch_floor_us": 2.0, "elementwise": 1.7, "inter_node_efficiency": 0.6}
BASE = """\
name: mine
groups:
- name: fast
  device: h100-sxm-80gb
  nodes: 2
  devices_per_node: 8
- name: slow
  device: {device: A100-80GB, matmul_efficiency: 0.7, memory_gib: 79}
  nodes: 4
  devices_per_node: 8
  price_per_device_hour: 1.5
  tiers:
  - {name: rack, nodes: 2, bandwidth_gbyte_per_s: 50}
links:
- {between: [fast, slow], bandwidth_gbit_per_s: 200}
"""


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """Return a file of 60 runs of a machine that is slower than the catalogue says."""
    rows = shapes(60)
    return written(tmp_path / "mine.csv", rows, times(rows, TRUTH, noise=0.02))


def test_a_file_is_made_from_the_runs(run: Planner, runs: str) -> None:
    """Device, nodes and links as the runs say, with the fitted figures; the same bytes each time."""
    done = run("calibrate", runs, "-o", "cluster.yaml")
    assert (done.exit_code, done.stderr) == (0, "")
    text = Path("cluster.yaml").read_text(encoding="utf-8")
    assert run("calibrate", runs, "-o", "-").stdout == text
    record = load(text, "cluster.yaml").value
    group, calibration = record["groups"][0], record["calibration"]
    assert (group["nodes"], group["devices_per_node"], group["intra_node"]) == (2, 8, "nvlink3")
    assert group["device"].keys() == {"device", "matmul_efficiency"}
    assert group["inter_node"].keys() == {"network", "efficiency"}
    assert calibration["constants"].keys() == {"launch_floor_us", "elementwise", "elementwise_inner"}
    assert calibration["rows"] == 60
    found = read_cluster("cluster.yaml")
    assert found.groups[0].device.matmul_efficiency == group["device"]["matmul_efficiency"]
    assert found.groups[0].inter_node.efficiency == group["inter_node"]["efficiency"]
    assert found.calibration is not None
    assert dict(found.calibration.constants)["launch_floor"] == pytest.approx(
        calibration["constants"]["launch_floor_us"] * 1e-6
    )


def test_a_calibrated_cluster_makes_the_round_trip(run: Planner, runs: str) -> None:
    """Read, resolved, written and read again, nothing is lost."""
    run("calibrate", runs, "-o", "cluster.yaml")
    found = read_cluster("cluster.yaml")
    assert cluster_from_record(cluster_record(found)) == found


def test_the_given_cluster_keeps_everything_else(run: Planner, runs: str) -> None:
    """Only the efficiencies of the group that was measured change, and a calibration of the result gives the same."""
    Path("base.yaml").write_text(BASE, encoding="utf-8")
    before = load(BASE, "base.yaml").value
    assert run("calibrate", runs, "--cluster", "base.yaml", "-o", "new.yaml").exit_code == 0
    after = load(Path("new.yaml").read_text(encoding="utf-8"), "new.yaml").value
    calibration, slow = after.pop("calibration"), after["groups"][1]
    assert calibration["priors"]["matmul_efficiency"] == 0.7
    assert slow["device"].pop("matmul_efficiency") != before["groups"][1]["device"].pop("matmul_efficiency")
    assert slow.pop("inter_node").keys() == {"network", "efficiency"}
    assert after == before
    assert run("calibrate", runs, "--cluster", "new.yaml", "-o", "again.yaml").exit_code == 0
    assert Path("again.yaml").read_bytes() == Path("new.yaml").read_bytes()


def test_a_calibration_of_another_device_is_replaced(run: Planner, runs: str, tmp_path: Path) -> None:
    """It is said, and the other device keeps its efficiency."""
    Path("base.yaml").write_text(BASE, encoding="utf-8")
    rows = shapes(12, gpu="h100-sxm-80gb")
    other = written(tmp_path / "other.csv", rows, [1.1 * time for time in times(rows, {})])
    assert run("calibrate", other, "--cluster", "base.yaml", "-o", "first.yaml").stderr == ""
    done = run("calibrate", runs, "--cluster", "first.yaml", "-o", "second.yaml")
    assert "note: replaces the calibration on 12 runs of megatron on h100-sxm-80gb" in done.stderr
    first, second = read_cluster("first.yaml"), read_cluster("second.yaml")
    assert second.groups[0] == first.groups[0] != read_cluster("base.yaml").groups[0]
    assert second.calibration is not None
    assert second.calibration.device == "a100-sxm-80gb"


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ("1x8:h100-sxm-80gb", "has no group of a100-sxm-80gb, which the runs used; it has h100-sxm-80gb"),
        ("1x8:a100-sxm-80gb+2x8:a100-sxm-80gb", "has several groups of a100-sxm-80gb"),
        ("nothing.yaml", "no such file"),
    ],
)
def test_other_clusters_are_refused(cluster: str, says: str, run: Planner, runs: str) -> None:
    """Nothing is printed or written."""
    done = run("calibrate", runs, "--cluster", cluster, "-o", "new.yaml")
    assert (done.exit_code, done.stdout, Path("new.yaml").exists()) == (2, "", False)
    assert says in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--device", "a100-sxm-80bg"], "--device: no device is called 'a100-sxm-80bg'; did you mean a100-sxm-80gb"),
        (["--framework", "megatrn"], "--framework: no framework is called 'megatrn'; did you mean megatron"),
        (["--device", "h100-sxm-80gb"], "none of the 60 runs can be used (another device than h100-sxm-80gb: 60)"),
        (["-o", "nowhere/new.yaml"], "there is no folder nowhere"),
    ],
)
def test_wrong_options_end_with_2(options: list[str], says: str, run: Planner, runs: str) -> None:
    """Each says what would be right."""
    done = run("calibrate", runs, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_values_at_a_bound_are_warned_about(run: Planner, tmp_path: Path) -> None:
    """On standard error, so that scripts see the same output."""
    rows = shapes(80, hidden=8192, layers=8)
    path = written(tmp_path / "quick.csv", rows, [time / 2 for time in times(rows, {})])
    done = run("calibrate", path)
    assert done.exit_code == 0
    assert "note: matmul_efficiency ended at its bound, 0.95" in done.stderr
    assert "at its bound" in done.stdout


def test_plans_and_predictions_use_the_calibrated_profile(run: Planner, runs: str) -> None:
    """A plan embeds the calibration, is priced with it when it is read again, and tells an edit by its digest."""
    run("calibrate", runs, "-o", "cluster.yaml")
    arguments = ["cluster.yaml", "model_specs/gpt2.json", "--global-batch", "64", "--no-references"]
    assert run("plan", *arguments, "-o", "plan.yaml").exit_code == 0
    file = read_plan("plan.yaml")
    assert file.cluster == read_cluster("cluster.yaml")
    assert not file.edited
    prediction, problems = predict_plan(file.plan, file.cluster, file.model, file.job)
    assert not problems
    assert file.figures is not None
    assert prediction.step_time == file.figures.step_time
    plain = replace(file.cluster, calibration=None)
    assert predict_plan(file.plan, plain, file.model, file.job)[0].step_time < 0.9 * prediction.step_time
    text = Path("plan.yaml").read_text(encoding="utf-8")
    rows = "rows: 60"
    assert rows in text
    Path("plan.yaml").write_text(text.replace(rows, "rows: 600"), encoding="utf-8")
    assert read_plan("plan.yaml").edited == ("cluster",)


def test_predictions_tell_what_they_rest_on(run: Planner, runs: str) -> None:
    """With the profile that was calibrated its error, with another that it was not."""
    run("calibrate", runs, "-o", "cluster.yaml")
    arguments = ["predict", "cluster.yaml", "model_specs/gpt2.json", "--layout"]
    assert "calibrated on 60 runs of megatron, error" in run(*arguments, "tp=2,gbs=64").stdout
    other = run(*arguments, "tp=2,gbs=64,framework=nanotron").stdout
    assert "calibrated on 60 runs of megatron; how far off nanotron is, is not known" in other
    assert "calibrated on 60 runs of megatron" in run("show", "cluster", "cluster.yaml").stdout


def test_only_the_calibrated_profile_changes(run: Planner, runs: str) -> None:
    """Other profiles, and the same one elsewhere, are the catalogue's."""
    run("calibrate", runs, "-o", "cluster.yaml")
    found = read_cluster("cluster.yaml")
    assert found.calibration is not None
    changed = framework_on(found, "megatron")
    usual = framework("megatron")
    constants: dict[str, Any] = dict(found.calibration.constants)
    assert changed != usual
    assert changed == replace(usual, **constants)
    assert framework_on(found, "nanotron") == framework("nanotron")
    assert framework_on(read_cluster("1x8:a100-sxm-80gb"), "megatron") == usual


def test_the_replay_is_priced_as_the_fit_was(run: Planner, tmp_path: Path) -> None:
    """A run with one stage takes in the plan's replay what the closed form of the calibration says."""
    rows = shapes(20, gpus=8, pp=1, tp=1, mbs=1, hidden=4096, layers=4)
    path = written(tmp_path / "alike.csv", rows, [1.1 * time for time in times(rows, {})])
    document = json.loads(run("calibrate", path, "--format", "json", "-o", "cluster.yaml").stdout)
    assert document["cluster"] == load(Path("cluster.yaml").read_text(encoding="utf-8"), "cluster.yaml").value
    assert document["error_after"]["mape"] < document["error_before"]["mape"]
    cluster = read_cluster("cluster.yaml")
    one = setting(read_runs([path])[0])
    batch = one.layout.num_replicas * one.layout.micro_batch * one.layout.num_microbatches
    job = replace(one.layout.job, global_batch=int(batch), framework=one.profile, headroom=0.1)
    plan, job = plan_from_layout(parse_layout(f"zero=1,gbs={batch}"), cluster, one.layout.model, job)
    factors = {constant["key"]: constant["fitted"] / constant["prior"] for constant in document["constants"]}
    assert predict_plan(plan, cluster, one.layout.model, job)[0].step_time == pytest.approx(times(rows, factors)[0])


def test_a_wrong_block_is_told(tmp_path: Path) -> None:
    """A device without a group, a profile that does not exist, and a constant that is none, each with its place."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "groups:\n- {device: h100-sxm-80gb, devices_per_node: 8}\ncalibration:\n  framework: megatrn\n"
        "  device: a100-sxm-80gb\n  rows: 10\n  runs: x\n  constants: {launch_floor_ms: 1}\n  priors: {}\n"
        "  error_before: {mape: 0.1, median: 0.1}\n  error_after: {mape: 0.1, median: 0.1}\n"
        "  error_cross_validated: {mape: 0.1, median: 0.1}\n  residuals: {p10: 0.9, p50: 1, p90: 1.1}\n",
        encoding="utf-8",
    )
    done = transcripts.run(f"planner show cluster {path}", transcripts.scratch(tmp_path))
    assert done.code == 2
    assert "c.yaml:4 calibration.framework: no framework is called 'megatrn'" in done.stderr
    assert "c.yaml:5 calibration.device: no group has the device 'a100-sxm-80gb'" in done.stderr
    assert "c.yaml:8 calibration.constants.launch_floor_ms: unknown key launch_floor_ms: write launch_floor_us" in (
        done.stderr
    )
