"""Measured runs on a calibrated machine: its devices, links and constants, and nothing of other machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.accuracy.judge import judge_runs
from planner.accuracy.runs import read_runs
from planner.accuracy.setting import setting
from planner.calibration.applied import on_cluster
from planner.domain.calibration import Calibration, SizeOfError
from planner.domain.cluster import Cluster
from planner.specs.cluster import read_cluster

DATA = Path(__file__).parents[1] / "accuracy" / "data"
RUNS = read_runs([str(DATA / "vtrain_multi_node.csv")])
ERROR = SizeOfError(mape=0.05, median=0.04)


def machine(efficiency: float, framework: str = "megatron-deepspeed") -> Cluster:
    """Return eight nodes of A100 with another efficiency, and launches of a second under a framework."""
    cluster = read_cluster("8x8:a100-sxm-80gb")
    group = cluster.groups[0]
    device = replace(group.device, matmul_efficiency=efficiency)
    found = Calibration(
        framework=framework,
        device=group.device.name,
        constants=(("launch_floor", 1.0),),
        priors=(),
        rows=20,
        runs="none",
        error_before=ERROR,
        error_after=ERROR,
        error_cross_validated=ERROR,
        residuals=(0.9, 1.0, 1.1),
    )
    return replace(cluster, groups=(replace(group, device=device),), calibration=found)


def test_runs_take_devices_and_constants_of_the_cluster() -> None:
    """A launch of a second is the slowest thing of every layer; another framework's constant is left alone."""
    item = setting(RUNS[0])
    changed = on_cluster(machine(0.5))(item).layout
    assert changed.group.device.matmul_efficiency == 0.5
    assert changed.framework.launch_floor == 1.0
    assert changed.framework.name == item.layout.framework.name
    other = on_cluster(machine(0.5, "megatron"))(item).layout
    assert other.framework == item.layout.framework


def test_runs_on_other_devices_stay() -> None:
    """A cluster without the run's device says nothing about it."""
    item = setting(RUNS[0])
    assert on_cluster(read_cluster("8x8:h100-sxm-80gb"))(item) == item


def test_slower_products_make_slower_runs() -> None:
    """Half the efficiency at most doubles a run, and does not leave it as it is."""
    base = replace(machine(0.8), calibration=None)
    slow = replace(machine(0.4), calibration=None)
    for fast, late in zip(
        judge_runs(RUNS, 0.1, on_cluster(base)), judge_runs(RUNS, 0.1, on_cluster(slow)), strict=True
    ):
        assert fast.step_time is not None
        assert late.step_time is not None
        assert 1.1 * fast.step_time < late.step_time < 2.0 * fast.step_time + 1e-9


def test_bandwidths_measured_in_the_job_stay() -> None:
    """Of a run with bus bandwidths of its own the devices alone are replaced."""
    run = next(run for run in read_runs([str(DATA / "nanotron_bench_raw_h100.csv")]) if run.gpus == 64)
    item = setting(run)
    moved = on_cluster(read_cluster("8x8:h100-sxm-80gb"))(item)
    assert moved.layout.group.inter_node == item.layout.group.inter_node
    assert moved.layout.group.inter_node.measured[0][1] == pytest.approx(run.busbw_allreduce_gbyte_per_s * 1e9)  # type: ignore[operator]
