"""Intervals come from the nearest runs that were held out; doubts name what no run vouches for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from planner.domain.calibration import Calibration, SizeOfError
from planner.domain.cluster import Cluster
from planner.domain.confidence import LEAST_ROWS, HeldOut, Interval, MeasuredRuns, Spread, TrackRecord, chip
from planner.domain.job import Job
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Prediction, StagePrediction
from planner.pipeline.confidence import confidence, with_confidence
from planner.pipeline.doubts import doubts
from planner.report.confidence import confidence_lines, likely_memory, likely_time
from planner.report.to_json import prediction_record
from planner.specs.catalog import frameworks, track_record
from planner.specs.cluster import read_cluster
from planner.units import GIB

JOB = Job(global_batch=8, sequence=4096, precision="bf16", framework="megatron")
CLUSTER = read_cluster("2x8:h100-sxm-80gb")
MODEL = builders.model()


def spread(p10: float, p90: float, rows: int = 20) -> Spread:
    return Spread(rows=rows, mape=0.061, median_ape=0.04, p10=p10, p50=1.0, p90=p90)


RECORD = TrackRecord(
    held_out=(
        HeldOut(profile="fsdp", chip="", precisions=("bf16",), time=spread(0.5, 1.5), memory=spread(0.75, 1.0)),
        HeldOut(profile="megatron", chip="", precisions=("bf16", "fp8"), time=spread(0.9, 1.1, 213), memory=None),
        HeldOut(profile="megatron", chip="a100", precisions=("fp16",), time=spread(0.8, 1.2), memory=spread(0.9, 1.25)),
    ),
    measured=(
        MeasuredRuns(profile="megatron", chip="h100", precision="fp16", rows=9),
        MeasuredRuns(profile="megatron", chip="a100", precision="fp16", rows=9),
        MeasuredRuns(profile="fsdp", chip="v100", precision="fp16", rows=9),
    ),
)


def plan(groups: tuple[str, ...] = ("h100-sxm-80gb",), *, dp: int = 1, **degrees: int) -> Plan:
    """Return a plan of one layer a stage."""
    strategy = Strategy(degrees=tuple((axis, degrees.get(axis, 1)) for axis in ("tp", "cp")), sequence_parallel=False)
    return Plan(
        stages=tuple(
            Stage(group=name, first_layer=at, last_layer=at, strategy=strategy) for at, name in enumerate(groups)
        ),
        schedule="1f1b",
        num_replicas=dp,
        micro_batch=1,
        num_microbatches=8,
        zero_stage=1,
    )


def prediction(launch: float = 0.0) -> Prediction:
    """Return 10 s a step, of which the host takes `launch`, and 40 GiB."""
    stage = StagePrediction(
        forward=1,
        backward=2,
        sync=0,
        memory=(("weights", 40.0 * GIB),),
        peaks=(("forward_backward", 40.0 * GIB),),
        memory_limit=72 * GIB,
        device_memory=80 * GIB,
        in_flight=1,
    )
    return Prediction(
        step_time=10.0,
        tokens_per_second=1.0,
        samples_per_second=1.0,
        num_devices=8,
        model_flops_utilization=0.5,
        bubble_fraction=0.0,
        time=(("matmul", 10 - launch), ("launch", launch)),
        stages=(stage,),
    )


def on(*devices: str) -> Cluster:
    """Return a cluster with a group of each device, named as it."""
    return read_cluster("+".join(f"2x8:{device}" for device in devices))


def test_the_nearest_runs_decide() -> None:
    """On A100 those on A100; on H100, which has too few, and on both together those of the profile."""
    a100, h100 = "a100-sxm-80gb", "h100-sxm-80gb"
    both = on(a100, h100)
    found = [
        confidence(plan(groups), prediction(), both, JOB, RECORD).step_time
        for groups in ((a100,), (h100,), (a100, h100))
    ]
    assert [(one.low, one.high) for one in found] == [(8, 12), (9, 11), (9, 11)]
    assert [one.basis for one in found] == [
        "20 megatron runs on A100 in fp16, held out",
        *["213 megatron runs in bf16, fp8, held out"] * 2,
    ]
    assert all(one.own for one in found)


def test_without_runs_the_widest_interval_is_a_guess() -> None:
    """Nothing is known of torchtitan, nor of megatron's memory on H100; rows of one chip say nothing of others."""
    found = confidence(plan(), prediction(), CLUSTER, replace(JOB, framework="torchtitan"), RECORD)
    assert (found.step_time.low, found.step_time.high, found.step_time.own) == (5, 15, False)
    assert found.step_time.basis == "too few torchtitan runs: the widest of fsdp, megatron"
    assert (found.held_out, found.low) == (None, ("no measured runs of torchtitan",))
    memory = confidence(plan(), prediction(), CLUSTER, JOB, RECORD).peak_memory
    assert memory == Interval(low=30 * GIB, high=40 * GIB, basis="too few megatron runs: the widest of fsdp", own=False)


def test_few_runs_of_the_cluster_are_no_interval() -> None:
    """The cluster's own runs are nearest, but percentiles of nine of them say nothing."""
    error = SizeOfError(mape=0.05, median=0.04)
    own = Calibration(
        framework="megatron",
        device="h100-sxm-80gb",
        constants=(),
        priors=(),
        rows=LEAST_ROWS,
        runs="none",
        error_before=error,
        error_after=error,
        error_cross_validated=error,
        residuals=(0.97, 1.0, 1.03),
    )
    found = [
        confidence(plan(), prediction(), replace(CLUSTER, calibration=calibration), JOB, RECORD).step_time
        for calibration in (own, replace(own, rows=LEAST_ROWS - 1))
    ]
    assert [(one.low, one.high) for one in found] == [(9.7, 10.3), (9, 11)]


def test_few_runs_are_a_doubt() -> None:
    """A framework with runs of which none, or few, were held out."""
    record = replace(RECORD, held_out=RECORD.held_out[:1])
    found = confidence(plan(), prediction(), CLUSTER, JOB, record)
    assert found.low == ("too few runs of megatron were held out to tell its errors",)


@pytest.mark.parametrize(
    ("device", "framework", "precision", "says"),
    [
        ("h100-sxm-80gb", "megatron", "bf16", []),
        ("h100-sxm-80gb", "megatron", "fp8", ["no measured runs of megatron on H100 in fp8"]),
        ("l40s-48gb", "megatron", "bf16", ["no measured runs on L40S"]),
        ("v100-sxm-32gb", "megatron", "fp16", ["no measured runs of megatron on V100"]),
        ("h100-sxm-80gb", "accelerate", "fp8", ["no measured runs of accelerate"]),
        ("l40s-48gb", "accelerate", "fp8", ["no measured runs of accelerate", "no measured runs on L40S"]),
    ],
)
def test_what_was_never_measured_is_a_doubt(device: str, framework: str, precision: str, says: list[str]) -> None:
    """Framework, chip, both together, precision; 16-bit precisions are one."""
    job = replace(JOB, framework=framework, precision=precision)
    assert list(doubts(plan((device,)), prediction(), on(device), job, RECORD.measured)) == says


@pytest.mark.parametrize(
    ("named", "launch", "says"),
    [
        (plan(tp=8, cp=2, dp=32), 2.0, []),
        (plan(tp=16), 0.0, ["tensor ranks on several nodes"]),
        (plan(cp=4), 0.0, ["cp 4: from 4 on little is measured"]),
        (plan(tp=8, cp=2, dp=33), 0.0, ["more than 512 devices"]),
        (plan(), 2.1, ["21% of the step waits for kernel launches, which depends on the host"]),
    ],
)
def test_what_was_often_far_off_is_a_doubt(named: Plan, launch: float, says: list[str]) -> None:
    """Each limit on its good and on its bad side."""
    assert list(doubts(named, prediction(launch), CLUSTER, JOB, RECORD.measured)) == says


def test_in_words_and_in_json() -> None:
    """The interval stands behind the step, the error and the doubts in lines of their own; JSON has the same."""
    trusted = replace(prediction(), confidence=confidence(plan(cp=4), prediction(), CLUSTER, JOB, RECORD))
    assert likely_time(trusted) == " (9.00 to 11.0 s in 8 of 10 runs)"
    assert likely_memory(trusted) == ""
    assert confidence_lines(trusted) == [
        "profile  megatron: error 6.1% (median 4.0%) on 213 megatron runs in bf16, fp8, held out",
        "doubtful cp 4: from 4 on little is measured",
    ]
    record = prediction_record(plan(cp=4), trusted)
    assert record["interval"] == {
        "step_time_s": [9.0, 11.0],
        "peak_memory_bytes": [30.0 * GIB, 40.0 * GIB],
        "basis": "213 megatron runs in bf16, fp8, held out",
        "memory_basis": "too few megatron runs: the widest of fsdp",
    }
    assert record["profile"] == {"name": "megatron", "held_out": {"rows": 213, "mape": 0.061, "median_ape": 0.04}}
    assert record["low_confidence"] == ["cp 4: from 4 on little is measured"]


def test_a_guess_is_called_one() -> None:
    """Where the framework has no record, no share of runs is promised."""
    found = confidence(plan(), prediction(), CLUSTER, replace(JOB, framework="torchtitan"), RECORD)
    guessed = replace(prediction(), confidence=found)
    assert likely_time(guessed) == " (5.00 to 15.0 s by other frameworks)"
    assert confidence_lines(guessed)[0] == (
        "profile  torchtitan: no held-out error; the interval is the widest of other frameworks"
    )
    assert prediction_record(plan(), guessed)["profile"] == {"name": "torchtitan", "held_out": None}


def test_a_prediction_alone_promises_nothing() -> None:
    """Without a record there is no interval."""
    assert (likely_time(prediction()), likely_memory(prediction()), confidence_lines(prediction())) == ("", "", [])


def test_the_record_of_the_catalogue_is_usable() -> None:
    """Percentiles ascend, profiles are frameworks, and every framework gets an interval of time and memory."""
    record = track_record()
    spreads = [one for row in record.held_out for one in (row.time, row.memory) if one]
    assert all(0 < one.p10 <= one.p50 <= one.p90 and one.rows >= 10 for one in spreads)
    assert {row.profile for row in record.held_out} | {runs.profile for runs in record.measured} <= {
        found.name for found in frameworks()
    }
    for found in frameworks():
        job = replace(JOB, framework=found.name)
        trusted = with_confidence(prediction(), plan(), CLUSTER, MODEL, job).confidence
        assert trusted is not None
        assert 0 < trusted.step_time.low < trusted.step_time.high
        assert 0 < trusted.peak_memory.low < trusted.peak_memory.high


def test_samples_beyond_the_model_are_doubtful() -> None:
    """A job may be longer than what the model was made for; the prediction says so."""
    longer = replace(MODEL, max_sequence=2048)
    for model, said in ((MODEL, False), (longer, True)):
        trusted = with_confidence(prediction(), plan(), CLUSTER, model, JOB).confidence
        assert trusted is not None
        assert any("beyond the 2,048" in reason for reason in trusted.low) == said


def test_forms_of_a_chip_are_one() -> None:
    """The name up to its first hyphen."""
    assert [chip(name) for name in ("h100-sxm-80gb", "H100-PCIe", "gb200-186gb", "ours")] == [
        "h100",
        "h100",
        "gb200",
        "ours",
    ]
