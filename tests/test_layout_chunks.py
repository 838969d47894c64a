"""Layouts with virtual stages: from a line to chunks, their report, and what is refused."""

from __future__ import annotations

import pytest

from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.errors import SpecError
from planner.pipeline import plan_from_layout, predict_plan, runs_on
from planner.report.stages import stage_table
from planner.report.to_json import prediction_record
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from planner.specs.model import read_model

CLUSTER = read_cluster("8x8:h100-sxm-80gb")
MODEL = read_model("model_specs/gpt3-175b.yaml")


def made(text: str) -> tuple[Plan, Prediction]:
    """Return the plan that a layout means, and its prediction."""
    job, _ = read_job(None, {}, MODEL, CLUSTER)
    plan, job = plan_from_layout(parse_layout(text), CLUSTER, MODEL, job)
    return plan, predict_plan(plan, CLUSTER, MODEL, job)[0]


def test_several_chunks_mean_the_interleaved_schedule() -> None:
    """GPT-3 175B of Narayanan et al. 2021: 96 layers on 8 stages of 3 chunks, of 4 layers each."""
    plan, _ = made("tp=8,pp=8,vpp=3,gbs=64,dp=1")
    assert (plan.schedule, plan.virtual_stages, plan.num_stages) == ("interleaved", 3, 8)
    assert [stage.chunks for stage in plan.stages[:2]] == [((0, 3), (32, 35), (64, 67)), ((4, 7), (36, 39), (68, 71))]
    assert {stage.num_layers for stage in plan.stages} == {12}
    assert runs_on(plan, CLUSTER) == ("megatron", "torchtitan")


def test_activations_grow_by_the_published_factor() -> None:
    """Korthikanti et al. 2022, section 4.2.3: the first stage keeps 1 + (P - 1) / (P v) times as much."""
    kept = {}
    for name, layout in (("plain", "vpp=1"), ("chunks", "vpp=3")):
        for batch in (64, 128):
            _, prediction = made(f"tp=8,pp=8,{layout},gbs={batch}")
            kept[name, batch] = dict(prediction.stages[0].memory)["activations"]
        assert kept[name, 64] == kept[name, 128]
    first = made("tp=8,pp=8,vpp=3,gbs=64")[1].stages[0]
    assert first.in_flight == pytest.approx(8 * (1 + 7 / 24))
    assert kept["chunks", 64] / kept["plain", 64] == pytest.approx(1 + 7 / 24, rel=0.02)


def test_less_bubble() -> None:
    """Three chunks fill and drain in a third of the time, but transfers take more: about half of the bubble is left."""
    plain, chunks = made("tp=8,pp=8,gbs=64")[1], made("tp=8,pp=8,vpp=3,gbs=64")[1]
    assert chunks.step_time < plain.step_time
    assert chunks.bubble_fraction < 0.55 * plain.bubble_fraction


def test_layers_that_do_not_divide_are_spread_over_the_chunks() -> None:
    """Of 96 layers on 20 chunks the first 16 hold five; nothing is lost, and frameworks must know unlike numbers."""
    plan, _ = made("tp=8,pp=4,vpp=5,dp=2,gbs=64")
    assert [stage.chunk_sizes for stage in plan.stages] == [(5, 5, 5, 5, 4)] * 4
    assert plan.stages[3].chunks[-1] == (92, 95)


def test_the_table_shows_chunks_compactly() -> None:
    """Layers of a stage are those of its first chunks and of its last; JSON has all of them."""
    plan, prediction = made("tp=8,pp=8,vpp=3,gbs=64")
    lines = stage_table(plan, prediction, CLUSTER)
    assert " 0-3, ... 64-67 " in lines[1]
    assert " 4-27, ... 68-91 " in lines[2]
    plan, prediction = made("tp=8,pp=4,vpp=6,gbs=64")
    assert " 0-3, ... 80-83 " in stage_table(plan, prediction, CLUSTER)[1]
    stages = prediction_record(plan, prediction)["stages"]
    assert stages[1]["layers"] == [4, 7]
    assert stages[1]["chunks"] == [[4, 7], [20, 23], [36, 39], [52, 55], [68, 71], [84, 87]]


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("pp=4,schedule=interleaved", "schedule=interleaved needs several chunks a stage; add vpp=2 or more"),
        ("pp=4,vpp=2,schedule=1f1b", "vpp=2 is nothing that schedule=1f1b can run; leave schedule out"),
        ("pp=8,vpp=16", "pp=8 times vpp=16 is more than the 96 layers"),
        ("vpp=2", "schedule=interleaved needs at least 2 stages; change pp"),
        ("pp=8,vpp=2,dp=1,gbs=12", "needs micro-batches in groups of 8, one a stage; 12 are no whole groups"),
    ],
)
def test_what_is_refused(layout: str, words: str) -> None:
    """Each message says what would be right."""
    with pytest.raises(SpecError) as caught:
        made(layout)
    assert words in str(caught.value)
