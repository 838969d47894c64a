"""The JSON that other programs rely on."""

from __future__ import annotations

import json

from planner.errors import NoFeasiblePlan, Problem
from planner.loader import load
from planner.report.to_json import dumped, no_plan_document, plan_document, prediction_document
from planner.specs.plan import plan_from_document
from report.report_cases import Case

PROMISED = {
    "": {
        "format_version", "status", "plan", "runs_on", "prediction", "certificate", "references", "search",
        "alternatives",
    },
    "prediction": {
        "step_time_s", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "model_flops_utilization", "fits",
        "bubble_fraction", "time", "stages",
    },
    "certificate": {"objective_s", "lower_bound_s", "gap", "replay_lower_bound_s"},
    "references": {"flops_step_time_s", "homogeneous_step_time_s", "homogeneous_reference", "whole_layer_ceiling"},
    "search": {"seconds", "subproblems", "pruned", "rejections"},
}  # fmt: skip
"""Keys that stay as long as format_version does; more may stand beside them."""
STAGE = {"group", "devices", "layers", "time_s", "peak_memory_bytes", "memory_limit_bytes", "memory"}


def document(small: Case, form: str = "json") -> str:
    plan = small.plan([("h100-sxm-80gb", 20), ("h100-sxm-80gb", 12)])
    other = small.plan([("h100-sxm-80gb", 32)], dp=2)
    return dumped(
        plan_document(small.outcome(plan, (other,)), small.cluster, small.model, small.job, ["megatron"]), form
    )


def test_the_promised_keys_are_there(small: Case) -> None:
    """Every key that the documentation promises is there, and a stage has its own."""
    value = json.loads(document(small))
    for part, keys in PROMISED.items():
        assert keys <= set(value[part] if part else value)
    assert set(value["prediction"]["stages"][0]) >= STAGE
    assert value["prediction"]["stages"][1]["layers"] == [20, 31]
    assert value["prediction"]["stages"][1]["devices"] == 8
    assert set(value["alternatives"][0]) >= {"plan", "prediction", "lost_because"}
    assert value["format_version"] == "1.0"
    assert value["status"] == "within_gap"


def test_keys_are_sorted_and_nothing_is_infinite(small: Case) -> None:
    """Text is the same for the same plan; what is not finite is null."""
    text = document(small)
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert json.loads(dumped({"b": float("inf"), "a": [float("nan")]}, "json")) == {"a": [None], "b": None}


def test_yaml_says_the_same(small: Case) -> None:
    """The YAML document is the JSON document."""
    assert load(document(small, "yaml"), "x.yaml").value == json.loads(document(small))


def test_the_document_is_a_plan_file(small: Case) -> None:
    """What plan --format json prints can be checked and explained as it is, and so can each alternative."""
    value = json.loads(document(small))
    read = plan_from_document(load(document(small), "x.json"))
    assert [stage.num_layers for stage in read.plan.stages] == [20, 12]
    alternative = plan_from_document(load(json.dumps(value["alternatives"][0]["plan"]), "y.json"))
    assert alternative.plan.num_replicas == 2


def test_times_sum_to_the_step(small: Case) -> None:
    """The parts of the step are seconds and sum to it; the memory of a stage is bytes and sums to its peak."""
    prediction = json.loads(document(small))["prediction"]
    assert abs(sum(prediction["time"].values()) / prediction["step_time_s"] - 1) < 1e-9
    stage = prediction["stages"][0]
    assert abs(sum(stage["memory"].values()) / stage["peak_memory_bytes"] - 1) < 1e-9
    assert stage["peaks"][stage["peak_at"]] == max(stage["peaks"].values()) == stage["peak_memory_bytes"]
    assert stage["pressure"] == stage["peak_memory_bytes"] / (80 * 2**30)


def test_a_prediction_has_its_problems(small: Case) -> None:
    """What does not fit is told with place and message."""
    plan = small.plan([("h100-sxm-80gb", 32)], tp=1)
    problems = [Problem("stages[0]", "needs more")]
    value = prediction_document(plan, small.predicted(plan), problems, small.cluster, small.model, small.job)
    assert value["problems"] == [{"place": "stages[0]", "message": "needs more"}]
    assert value["prediction"]["fits"] is False


def test_no_plan_has_its_reasons() -> None:
    """Rejections are counted, the most frequent first."""
    value = no_plan_document(NoFeasiblePlan("nothing fits", {"a": 1, "b": 3}))
    assert value["rejections"] == [{"reason": "b", "count": 3}, {"reason": "a", "count": 1}]
    assert value["status"] == "infeasible"
