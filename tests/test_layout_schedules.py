"""Layouts with schedules that are given by their passes: predicted, reported, and refused with a remedy."""

from __future__ import annotations

import pytest

from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.errors import SpecError
from planner.pipeline import plan_from_layout, predict_plan
from planner.report.explain import explain_text
from planner.report.judged import summary
from planner.report.prediction import prediction_text
from planner.report.schedules import schedule_record
from planner.report.stages import stage_table
from planner.report.staleness import by_stage, stale_lines
from planner.report.to_json import prediction_record
from planner.schedules import SCHEDULES, schedule_of
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.constraints import parse_constraint
from planner.specs.decision import decision, decision_record
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from planner.specs.model import read_model
from planner.specs.plan import unwritten
from planner.specs.plan_record import DecisionRecord

CLUSTER = read_cluster("2x8:h100-sxm-80gb")
MIXED = read_cluster("1x8:h100-sxm-80gb+1x8:a100-sxm-80gb")
MODEL = read_model("model_specs/llama-3-8b.json")
LAYOUT = "tp=2,pp=4,gbs=64,schedule="


def made(text: str, *, mixed: bool = False) -> tuple[Plan, Prediction]:
    """Return the plan that a layout means, and its prediction."""
    cluster = MIXED if mixed else CLUSTER
    job, _ = read_job(None, {}, MODEL, cluster)
    plan, job = plan_from_layout(parse_layout(text), cluster, MODEL, job)
    return plan, predict_plan(plan, cluster, MODEL, job)[0]


def named(name: str) -> str:
    """Return a layout with a schedule, and as many chunks as it needs."""
    chunks = ",vpp=2" if any(one.with_chunks for one in SCHEDULES if one.name == name) else ""
    return f"{LAYOUT}{name}{chunks}"


@pytest.mark.parametrize("mixed", [False, True], ids=["alike", "mixed"])
@pytest.mark.parametrize("name", [listed.name for listed in SCHEDULES])
def test_every_schedule_is_predicted(name: str, mixed: bool) -> None:
    """The parts are the step; no stage works longer than that, and all hold what the schedule counts."""
    plan, prediction = made(named(name), mixed=mixed)
    assert sum(seconds for _, seconds in prediction.time) == prediction.step_time
    slowest = max(stage.forward + stage.backward for stage in prediction.stages)
    assert plan.num_microbatches * slowest < prediction.step_time < 1.6 * plan.num_microbatches * slowest
    held = [schedule_of(plan).held(rank, plan.num_stages, plan.num_microbatches) for rank in range(plan.num_stages)]
    assert [stage.in_flight for stage in prediction.stages] == pytest.approx(held)
    assert decision(DecisionRecord.model_validate(decision_record(plan))) == plan
    assert stage_table(plan, prediction, MIXED if mixed else CLUSTER)


def test_zero_bubble_is_faster_and_holds_more() -> None:
    """Steps get shorter from 1f1b to zb-h1, zb-h2; the last rank holds 1, then 4 and 7 micro-batches."""
    plain, first, second = (made(named(name))[1] for name in ("1f1b", "zb-h1", "zb-h2"))
    assert plain.step_time > first.step_time > second.step_time
    assert [one.stages[-1].in_flight for one in (plain, first, second)] == [1, 4, 7]


def test_a_v_goes_to_and_fro() -> None:
    """Of 32 layers on 4 ranks, rank 0 has the first four and the last four."""
    plan, prediction = made(named("zbv"))
    assert [stage.chunks for stage in plan.stages] == [
        ((0, 3), (28, 31)),
        ((4, 7), (24, 27)),
        ((8, 11), (20, 23)),
        ((12, 15), (16, 19)),
    ]
    assert plan.virtual_stages == 2
    assert any(" 4-15, 16-27 " in line for line in stage_table(plan, prediction, CLUSTER))


def test_larger_groups_hold_more_for_as_long_a_step() -> None:
    """Groups of 8 micro-batches on 4 stages: 2 x 3 + 8 + 1 = 15 chunks of a half instead of 11."""
    plan, larger = made("tp=2,pp=4,gbs=64,vpp=2,vpp_group=8")
    _, usual = made("tp=2,pp=4,gbs=64,vpp=2")
    assert (plan.schedule, plan.microbatch_group) == ("interleaved", 8)
    assert larger.stages[0].in_flight == 7.5
    assert usual.stages[0].in_flight == 5.5
    assert larger.step_time == pytest.approx(usual.step_time, rel=0.01)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (LAYOUT + "zbw", "schedule=zbw is not known; use one of 1f1b, gpipe, interleaved, breadth-first,"),
        (LAYOUT + "breadth-first", "schedule=breadth-first needs several chunks a stage; add vpp=2 or more"),
        (LAYOUT + "zbv,vpp=3", "vpp=3 is nothing that schedule=zbv can run; leave schedule out, or write schedule=int"),
        (LAYOUT + "zb-h1,vpp=2", "vpp=2 is nothing that schedule=zb-h1 can run"),
        (LAYOUT + "1f1b,vpp_group=8", "vpp_group=8 needs schedule=interleaved with vpp=2 or more; leave vpp_group out"),
        ("tp=2,pp=4,gbs=64,vpp=2,vpp_group=2", "schedule=interleaved needs groups of 4 to 32 micro-batches"),
        (
            "tp=2,pp=4,gbs=8,dp=2,schedule=dualpipe",
            "schedule=dualpipe needs an even number of micro-batches, 8 or more",
        ),
        ("tp=2,pp=3,dp=2,gbs=64,schedule=chimera", "needs an even number of stages; 3 have a middle one; change pp,"),
    ],
)
def test_what_cannot_run_is_refused(layout: str, words: str) -> None:
    """With what would do."""
    with pytest.raises(SpecError) as caught:
        made(layout)
    assert words in str(caught.value)


def test_constraints_name_every_schedule() -> None:
    """The search takes what it is told, and nothing else."""
    for listed in SCHEDULES:
        assert parse_constraint(f"schedule = {listed.name}").value == listed.name
    with pytest.raises(SpecError, match="did you mean zbv"):
        parse_constraint("schedule = zb-v")


def test_stale_gradients_are_told() -> None:
    """Two versions of the weights, no bubble but the exchange, and a reason to doubt."""
    (plan, stale), (_, plain) = made(named("pipedream-2bw")), made(named("1f1b"))
    assert stale.step_time < plain.step_time
    for one, other in zip(stale.stages, plain.stages, strict=True):
        assert dict(one.memory)["weights"] == pytest.approx(2 * dict(other.memory)["weights"])
        assert one.in_flight == other.in_flight
    assert stale.confidence is not None
    assert "pipedream-2bw trains otherwise: gradients are of weights 1 step old" in stale.confidence.low
    assert plan.schedule == "pipedream-2bw"


@pytest.mark.parametrize(
    ("name", "doubt", "lines"),
    [
        (
            "pipedream-2bw",
            "gradients are of weights 1 step old",
            ["updated while micro-batches are in flight", "gradients in updates: 1 on every stage", "2 on every stage"],
        ),
        (
            "pipedream",
            "gradients are of weights up to 3 micro-batches old",
            [
                "updated after every micro-batch, 32 times a step",
                "gradients in updates: 3 (stage 0), 2 (stage 1), 1 (stage 2), 0 (stage 3)",
                "versions of the weights: 4 (stage 0), 3 (stage 1), 2 (stage 2), 1 (stage 3)",
            ],
        ),
        (
            "spectrain",
            "gradients are of weights predicted up to 3 micro-batches ahead",
            ["forward 3 (stage 0), 2 (stages 1-2), 1 (stage 3); backward 0 (stages 0-1), 1 (stages 2-3)"],
        ),
        (
            "xpipe",
            "gradients are of weights predicted 1 step ahead",
            [
                "gradients in updates: 1 (stages 0-2), 0 (stage 3)",
                "forward 1 on every stage; backward 1 on every stage",
            ],
        ),
    ],
)
def test_what_is_trained_on_is_told(name: str, doubt: str, lines: list[str]) -> None:
    """In the reports of a layout, a plan and an explanation, and among the reasons to doubt."""
    plan, prediction = made(named(name))
    assert prediction.confidence is not None
    assert f"{name} trains otherwise: {doubt}" in prediction.confidence.low
    job, _ = read_job(None, {}, MODEL, CLUSTER)
    file = unwritten(plan, CLUSTER, MODEL, job, "layout")
    for text in (
        prediction_text(plan, prediction, (), CLUSTER, MODEL, job),
        explain_text(plan, prediction, CLUSTER, MODEL, job),
        "\n".join(stale_lines(plan)),
        " stale ".join(summary(file, prediction, None)),
    ):
        flat = " ".join(text.split())
        assert f"stale {name} changes what is trained: weights are " in flat
        assert all(line in flat for line in lines)
    assert not stale_lines(made(named("1f1b"))[0])


def test_many_stages_are_not_told_one_by_one() -> None:
    """Of more runs than a few the first and the last."""
    assert by_stage([7, 6, 5, 4, 3, 2, 1, 0]) == "7\u00a0(stage\u00a00) to 0\u00a0(stage\u00a07)"
    assert by_stage([0]) == "0 on the\u00a0stage"


def test_staleness_of_every_stage_is_in_the_record() -> None:
    """With the versions and the predictions; of schedules that train as usual nothing is said."""
    plan, prediction = made(named("spectrain"))
    record = prediction_record(plan, prediction)
    assert record["updates_per_step"] == 32
    assert [stage["staleness"] for stage in record["stages"]] == [3, 2, 1, 0]
    assert [stage["weight_versions"] for stage in record["stages"]] == [2, 2, 2, 2]
    assert record["stages"][2]["predicted_ahead"] == {"forward": 2, "backward": 1}
    assert record["time"]["weight_prediction"] > 0
    stashed = prediction_record(*made(named("pipedream")))
    assert [stage["weight_versions"] for stage in stashed["stages"]] == [4, 3, 2, 1]
    assert "predicted_ahead" not in stashed["stages"][0]
    assert "weight_prediction" not in stashed["time"]
    once = prediction_record(*made(named("pipedream-2bw")))
    assert once["updates_per_step"] == 1
    plain = prediction_record(*made(named("1f1b")))
    assert "updates_per_step" not in plain
    assert not {"staleness", "weight_versions"} & set(plain["stages"][0])
    assert stashed["stages"][0]["sync_time_s"] == pytest.approx(32 * once["stages"][0]["sync_time_s"])


def test_a_single_stage_that_updates_each_micro_batch_is_told() -> None:
    """No weights are stale, but a step is many."""
    _, prediction = made("tp=2,pp=1,gbs=64,schedule=pipedream")
    assert prediction.confidence is not None
    assert "pipedream trains otherwise: weights change after every micro-batch" in prediction.confidence.low


def test_a_listing_tells_what_all_ranks_share() -> None:
    """2BW has two versions and is one step old everywhere; what depends on the rank is null."""
    listed = {one.name: schedule_record(one, catalog.frameworks()) for one in SCHEDULES}
    assert (listed["pipedream-2bw"]["weight_copies"], listed["pipedream-2bw"]["staleness"]) == (2, 1)
    assert (listed["pipedream"]["weight_copies"], listed["pipedream"]["staleness"]) == (None, None)
    assert (listed["xpipe"]["weight_copies"], listed["xpipe"]["staleness"]) == (2, None)
    assert (listed["chimera"]["weight_copies"], listed["chimera"]["staleness"]) == (2, 0)
