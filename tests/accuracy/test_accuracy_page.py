"""The page on accuracy and the record of errors are what the measured runs come to, now."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import transcripts
from accuracy.judged_runs import DATA, judged
from planner.accuracy.causes import causes
from planner.accuracy.judge import judge_runs, price
from planner.accuracy.runs import read_runs
from planner.accuracy.setting import setting
from planner.accuracy.track import spread, track_record
from planner.accuracy.uncalibrated import uncalibrated
from planner.costs.batch import stack, structure
from planner.domain.confidence import LEAST_ROWS, Spread
from planner.loader import load

ROOT = transcripts.ROOT
SPLITS = load((ROOT / "benchmarks" / "splits.yaml").read_text(encoding="utf-8"), "splits.yaml").value
WRITTEN = ("docs/accuracy.md", "planner/catalog/errors.yaml")
RUNS = read_runs([str(DATA / "sample.csv")])


def test_page_and_record_are_those_of_the_data(tmp_path: Path, update_golden: bool) -> None:
    """``make accuracy`` would change nothing."""
    into = ROOT if update_golden else tmp_path
    command = [sys.executable, "benchmarks/accuracy.py", "--into", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in WRITTEN:
        assert (into / name).read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8"), (
            f"{name} is stale: make accuracy writes it again"
        )


def test_every_file_is_split() -> None:
    """Each file of runs stands in the table once; its rows are part calibration and part test, or all test."""
    files = {path.name for path in DATA.glob("*.csv")} - {"sample.csv"}
    assert Counter(row["file"] for row in SPLITS) == Counter(files)
    for row in SPLITS:
        runs = read_runs([str(DATA / row["file"])])
        for wanted in row.get("calibration", ()):
            for column, patterns in wanted.items():
                for pattern in patterns:
                    fitted = sum(fnmatchcase(run.row[column], pattern) for run in runs)
                    assert 0 < fitted < len(runs), f"{row['file']}: {column} {pattern}"


def test_percentiles_are_of_measured_over_predicted() -> None:
    """11 runs measured at 1.0, 1.1, ... 2.0 of what is predicted: the 10th percentile is the second."""
    pairs = [(10.0, 10.0 + step) for step in range(11)]
    found = spread(pairs)
    assert found is not None
    assert (found.rows, found.p10, found.p50, found.p90) == (11, 1.1, 1.5, 1.9)
    assert found.median_ape == round(1 - 1 / 1.5, 3)
    assert spread(pairs[: LEAST_ROWS - 1]) is None
    assert spread([*pairs[: LEAST_ROWS - 1], (None, 1.0), (1.0, None)]) is None


def test_the_record_holds_healthy_rows_that_were_held_out() -> None:
    """Of a run that is repeated, flagged copies and those that constants were fitted to are left out."""
    one = next(run for run in RUNS if not run.flag and run.framework == "nanotron" and run.oom == "0")
    good = judged(1.0, 10, row={})
    good = replace(good, run=replace(one, iter_time_s=1.0, mem_gib_per_gpu=20.0), profile="nanotron")
    flagged = replace(good, run=replace(good.run, flag="noise"))
    record = track_record([good] * 30 + [flagged], [good] * 12 + [flagged])
    same = Spread(rows=12, mape=0.0, median_ape=0.0, p10=1.0, p50=1.0, p90=1.0)
    twice = Spread(rows=12, mape=0.5, median_ape=0.5, p10=2.0, p50=2.0, p90=2.0)
    assert [(row.profile, row.chip, row.time, row.memory) for row in record.held_out] == [
        ("nanotron", "", same, twice),
        ("nanotron", "h100", same, twice),
    ]
    assert [(runs.profile, runs.chip, runs.precision, runs.rows) for runs in record.measured] == [
        ("nanotron", "h100", "bf16", 30)
    ]


def test_uncalibrated_constants_are_the_same_for_all() -> None:
    """Frameworks differ in what they do, no longer in how well; devices have their measured ceiling."""
    plain = [uncalibrated(setting(run)).layout for run in RUNS]
    constants = ("saturation", "elementwise", "launch_floor", "collective_latency", "step_overhead", "fragmentation")
    assert len({tuple(getattr(layout.framework, name) for name in constants) for layout in plain}) == 1
    assert {layout.group.device.name.split("-")[0]: layout.group.device.matmul_efficiency for layout in plain} == {
        "a100": 0.87,
        "h100": 0.80,
    }
    assert len({layout.framework.gradient_bytes for layout in plain} | {0}) > 1
    assert judge_runs(RUNS, 0.1, uncalibrated) != judge_runs(RUNS, 0.1)


def test_causes_are_told_in_their_order() -> None:
    """A flag comes first, then tensor ranks beyond their node; a layer too small for its launches is a small job."""
    base = next(run for run in RUNS if run.oom == "0" and not run.flag and run.framework == "megatron-deepspeed")
    tiny: Any = {"hidden": 512, "heads": 8, "kv_heads": 8, "ffn": 2048, "seq": 128, "params_b": None}
    runs = [
        replace(base, flag="noise", **tiny),
        replace(base, gpus_per_node=1, tp=2, dp=(base.dp or 2) // 2, **tiny),
        replace(base, **tiny),
        replace(base, iter_time_s=None, tokens_per_s_per_gpu=None),
    ]
    first, second, third, fourth = causes(judge_runs(runs, 0.1), 0.1)
    assert (first, second, fourth) == ("flagged: noise", "tensor ranks on several nodes", "")
    assert third.startswith("small jobs")


@pytest.mark.parametrize("at", range(len(RUNS)))
def test_layouts_are_priced_alike_alone_and_together(at: int) -> None:
    """What arrays say of a run is what numbers say."""
    settings = [setting(one) for one in RUNS]
    assert price(settings)[at] == pytest.approx(price([settings[at]])[0], rel=1e-12)


def test_numbers_of_one_structure_become_arrays() -> None:
    """Zeros, text and lengths of tuples tell structures apart; numbers that are all equal stay numbers."""
    settings = [setting(one) for one in RUNS]
    twins = [one.layout for one in settings if structure(one.layout) == structure(settings[0].layout)]
    changed = replace(twins[0], num_replicas=twins[0].num_replicas * 2)
    assert structure(changed) == structure(twins[0])
    assert structure(replace(twins[0], num_replicas=0)) != structure(twins[0])
    stacked = stack([twins[0], changed])
    assert stacked.num_replicas.tolist() == [twins[0].num_replicas, changed.num_replicas]
    assert stacked.num_stages == twins[0].num_stages
    assert stacked.model is twins[0].model
