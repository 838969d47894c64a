"""What is told of a plan that does not fit: changes with which it does, by the same predictor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.pipeline import find_repairs, plan_from_layout, predict_plan
from planner.pipeline.misfit import MORE_NODES, _kinds
from planner.report.pressure import FULL, warning_lines, warnings
from planner.specs.catalog import optimizer
from planner.specs.cluster import read_cluster
from planner.specs.layout import parse_layout
from planner.specs.model import read_model
from planner.units import GIB

LAYOUT = "tp=1,pp=8,dp=4,mbs=4,gbs=128,seq=512"
JOB = Job(
    global_batch=128,
    sequence=512,
    precision="bf16",
    framework="megatron",
    optimizer=optimizer("adam-bf16-pure"),
)

Named = tuple[Plan, Cluster, Model, Job]


def named(layout: str = LAYOUT, job: Job = JOB, cluster: str = "4x8:h100-sxm-80gb") -> Named:
    """Return fine-tuning of Llama 3 70B: short samples, all bf16, on 32 devices of 80 GiB."""
    where, model = read_cluster(cluster), read_model("model_specs/llama-3-70b.json")
    plan, settled = plan_from_layout(parse_layout(layout), where, model, job)
    return plan, where, model, settled


def predicted(what: Named) -> Prediction:
    return predict_plan(*what)[0]


def test_a_smaller_micro_batch_is_a_repair_with_its_cost() -> None:
    """Micro-batch 4 runs out of memory; 2 does not, and its cost is that of the layout with 2 when it is named."""
    what = named()
    prediction = predicted(what)
    assert not prediction.fits
    repairs = {repair.change: repair for repair in find_repairs(*what, prediction)}
    halved = predicted(named(LAYOUT.replace("mbs=4", "mbs=2")))
    found = repairs["micro-batch 2"]
    assert halved.fits
    assert found.step_time == halved.step_time
    assert found.slower_by == pytest.approx(halved.step_time / prediction.step_time - 1)
    assert found.peak_memory == max(stage.peak_memory for stage in halved.stages)


def test_repairs_come_cheapest_first_and_devices_last() -> None:
    """At most five; those on the same devices by their time per token, then those that need more devices."""
    what = named()
    repairs = find_repairs(*what, predicted(what))
    assert 1 < len(repairs) <= 5
    bought = [repair.change.startswith(("twice the nodes", "devices with")) for repair in repairs]
    assert bought == sorted(bought)
    times = [repair.step_time for repair, other in zip(repairs, bought, strict=True) if not other]
    assert times == sorted(times)
    assert all(repair.peak_memory <= 0.9 * 80 * GIB for repair in repairs if not repair.change.startswith("devices"))


def test_what_fits_needs_no_repair() -> None:
    what = named(LAYOUT.replace("mbs=4", "mbs=1"))
    assert find_repairs(*what, predicted(what)) == ()


def test_the_fewest_recomputed_layers_are_told() -> None:
    """Megatron recomputes as many layers in every stage; with one layer less of each the plan does not fit."""
    plan, cluster, model, job = what = named()
    found = next(repair.change for repair in find_repairs(*what, predicted(what)) if "recompute" in repair.change)
    layers = int(found.removeprefix("recompute ").split()[0])
    assert found == f"recompute {layers} layers of every stage in full"
    fits = []
    for count in (layers - 1, layers):
        stages = tuple(replace(stage, num_recomputed=count) for stage in plan.stages)
        fits.append(predict_plan(replace(plan, stages=stages), cluster, model, job)[0].fits)
    assert fits == [False, True]


def test_stages_that_may_differ_recompute_only_where_it_is_needed() -> None:
    """A plan that no framework runs as it is may recompute in some stages: where memory lacks, and no layer more."""
    plan, cluster, model, job = named()
    odd = replace(plan, stages=(replace(plan.stages[0], num_recomputed=1), *plan.stages[1:]))
    prediction = predict_plan(odd, cluster, model, job)[0]
    full = [index for index, stage in enumerate(prediction.stages) if not stage.fits]
    assert 0 < len(full) < len(plan.stages)
    change = next(
        repair.change for repair in find_repairs(odd, cluster, model, job, prediction) if "recompute" in repair.change
    )
    assert f"of stages 0-{full[-1]} in full" in change


def test_every_change_keeps_the_step() -> None:
    """Whatever is changed, the samples of a step and the layers of the model stay what they are."""
    plan, cluster, model, job = named("tp=2,pp=4,dp=4,mbs=4,gbs=128,seq=512")
    changes = [change for kind in _kinds(plan, cluster, model, job) for change in kind]
    names = " ".join(change.text for change in changes)
    for word in (
        "tp 4, dp 2",
        "cp 2, dp 2",
        "pp 8, dp 2",
        "micro-batch 1",
        "dp 8",
        "four times the nodes (128 devices), dp 16",
        "eight times the nodes (256 devices), pp 32",
        "devices with 141 GiB",
        "selective",
    ):
        assert word in names
    for change in changes:
        assert change.plan.global_batch == job.global_batch
        layers = [(stage.first_layer, stage.last_layer) for stage in change.plan.stages]
        assert [first for first, _ in layers] == [0, *(last + 1 for _, last in layers[:-1])]
        assert layers[-1][1] == model.num_layers - 1
        times = next((times for times, word in MORE_NODES if change.text.startswith(word)), 1)
        assert change.plan.num_devices == plan.num_devices * times == change.cluster.num_devices
    bought = [change.text.partition(",")[0] for change in changes if "the nodes" in change.text]
    assert bought == [
        *["twice the nodes (64 devices)"] * 3,
        *["four times the nodes (128 devices)"] * 3,
        *["eight times the nodes (256 devices)"] * 3,
    ]


def test_nearly_full_devices_are_warned_of() -> None:
    """Above 85% of the memory of a device a stage is named with its figure; what does not fit is no warning."""
    prediction = predicted(named(LAYOUT.replace("mbs=4", "mbs=2")))
    expected = [index for index, stage in enumerate(prediction.stages) if stage.peak_memory > FULL * 80 * GIB]
    assert expected
    assert [index for index, _ in warnings(prediction)] == expected
    fullest = prediction.stages[0]
    assert f"{fullest.peak_memory / (80 * GIB):.1%} of the device's memory" in warnings(prediction)[0][1]
    lines = " ".join(warning_lines(prediction))
    assert lines.startswith("warning")
    assert "stage" in lines
    over = predicted(named())
    assert all(over.stages[index].fits for index, _ in warnings(over))
    assert warning_lines(predicted(named(LAYOUT.replace("mbs=4", "mbs=1")))) == []
