"""``schedule = search``: from a cluster to a plan with an order of its own, and what is done with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import builders
from planner.costs import plan_cost
from planner.domain.job import Job
from planner.domain.plan import SEARCHED
from planner.domain.prediction import Outcome
from planner.errors import CannotExpress, NoFeasiblePlan, SpecError
from planner.export import EXPORTERS
from planner.loader import dump_yaml
from planner.pipeline import judge, make_plan, predict_plan, why_not
from planner.pipeline.order import for_stages
from planner.pipeline.written import parts
from planner.program import order
from planner.report.plan import proof
from planner.schedules import INPUT, SCHEDULES, csv_text, rows, schedule, schedule_of
from planner.simulate import timeline
from planner.specs.calibration import framework_on
from planner.specs.constraints import parse_constraint
from planner.specs.plan import PlanFile, plan_record, read_plan

CLUSTER = builders.cluster(
    builders.group("fast", nodes=1, per_node=2), builders.group("slow", nodes=1, per_node=2, speed=0.5)
)
MODEL = builders.model(12)


def job(*texts: str, batch: int = 8, **rest: object) -> Job:
    return builders.job(batch, "schedule = search", "pp = 4", *texts, gap=0.01, **rest)


@cache
def found() -> Outcome:
    return make_plan(CLUSTER, MODEL, job(), references=False)


def file(tmp_path: Path) -> PlanFile:
    """Return the plan file of the plan, written and read."""
    outcome, path = found(), tmp_path / "plan.yaml"
    record = plan_record(outcome.plan, CLUSTER, MODEL, job(), outcome.certificate, outcome.prediction)
    path.write_text(dump_yaml(record), encoding="utf-8")
    return read_plan(str(path))


def test_no_named_schedule_of_these_stages_is_faster() -> None:
    """All that end a step before the next, with the chunks and their placement as they are; the bound is below all."""
    outcome = found()
    plan = outcome.plan
    assert plan.schedule == SEARCHED
    assert outcome.certificate.objective == outcome.prediction.step_time >= outcome.certificate.lower_bound > 0
    own = schedule_of(plan)
    tried = 0
    for listed in SCHEDULES:
        named = listed.with_chunks(plan.virtual_stages) if listed.with_chunks and plan.virtual_stages > 1 else listed
        shape = (plan.num_stages, plan.num_microbatches)
        same = named.virtual_stages == plan.virtual_stages and named.hosted(4) == own.hosted(4)
        if not same or named.blocker(*shape) or not named.flushes or named.joins_steps:
            continue
        other = replace(plan, schedule=SEARCHED, order=rows(named.passes(*shape)))
        prediction, problems = predict_plan(other, CLUSTER, MODEL, replace(job(), constraints=()))
        if not problems:
            tried += 1
            assert outcome.prediction.step_time <= prediction.step_time * (1 + 1e-12)
    assert tried


def test_the_plan_of_the_named_schedules_is_the_first_runner_up() -> None:
    outcome = found()
    first = outcome.alternatives[0]
    assert first.plan.schedule in {listed.name for listed in SCHEDULES}
    assert first.prediction.step_time >= outcome.prediction.step_time
    assert proof(outcome.certificate, of=outcome.plan).split(": ", 1)[1].startswith("no order of the passes")


def test_backward_passes_are_whole_where_that_is_as_good() -> None:
    """On the first virtual stage nobody waits for the gradient of the input."""
    first = found().plan.order[0].split(",")
    assert not [cell for cell in first if cell.startswith("0I")]


def test_a_plan_file_keeps_the_order(tmp_path: Path) -> None:
    read = file(tmp_path)
    assert read.plan == found().plan
    assert not read.edited
    prediction, problems, notes = judge(read)
    assert prediction is not None
    assert prediction.step_time == pytest.approx(found().prediction.step_time)
    assert (problems, notes) == ((), ())


def test_its_timeline_runs_the_order() -> None:
    plan = found().plan
    costs = plan_cost(plan, CLUSTER, MODEL, job(), framework_on(CLUSTER, "megatron"))
    seen = timeline(plan, costs)
    assert seen.step_time == pytest.approx(found().prediction.step_time)
    kinds = [[one.name for one in sorted(passes, key=lambda one: one.start)][:-1] for passes in seen.passes]
    assert [len(own) + 1 for own in kinds] == [len(row.split(",")) for row in plan.order]


def test_an_edited_order_is_judged(tmp_path: Path) -> None:
    """A pass that was moved is told, and one that is no pass is told with its place."""
    read = file(tmp_path)
    row, *others = read.plan.order
    cells = row.split(",")
    edited = replace(read, plan=replace(read.plan, order=(",".join(cells[1:]), *others)))
    prediction, problems, _ = judge(edited)
    assert prediction is None
    assert [one.code for one in problems] == ["PL111", "PL111"]
    path = tmp_path / "plan.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(row, f"{row},huh"), encoding="utf-8")
    with pytest.raises(SpecError, match=r"plan.order\[0\].*'huh', which is no pass"):
        read_plan(str(path))


def test_torchtitan_gets_a_file_of_passes_and_others_refuse(tmp_path: Path) -> None:
    wanted, alike = job(target="torchtitan", framework="torchtitan"), builders.cluster(builders.group())
    outcome = make_plan(alike, MODEL, wanted, references=False)
    read = replace(file(tmp_path), plan=outcome.plan, job=wanted, cluster=alike)
    titan, other = (next(one for one in EXPORTERS if one.name == name) for name in ("torchtitan", "megatron"))
    module, passes = parts(titan, read)
    assert 'p.pipeline_parallel_schedule_csv = "plan_passes.csv"' in module.text
    assert (passes.name, passes.text) == ("plan_passes.csv", "".join(f"{row}\n" for row in outcome.plan.order))
    assert ("c.compile.enable = True" in module.text) == (INPUT not in passes.text)
    with pytest.raises(CannotExpress, match="schedule search"):
        parts(other, read)


@pytest.mark.parametrize(
    ("name", "layout"), [("zb-h1", "1F1B"), ("v-half", "ZBVZeroBubble"), ("v-min", "ZBVZeroBubble")]
)
def test_torchtitan_gets_the_passes_of_schedules_without_a_name(tmp_path: Path, name: str, layout: str) -> None:
    """Beside the schedule that lays stages out alike."""
    wanted = builders.job(8, f"schedule = {name}", "pp = 4", target="torchtitan", framework="torchtitan")
    alike = builders.cluster(builders.group())
    plan = make_plan(alike, MODEL, wanted, references=False).plan
    titan = next(one for one in EXPORTERS if one.name == "torchtitan")
    module, passes = parts(titan, replace(file(tmp_path), plan=plan, job=wanted, cluster=alike))
    assert f'p.pipeline_parallel_schedule = "{layout}"' in module.text
    assert 'p.pipeline_parallel_schedule_csv = "plan_passes.csv"' in module.text
    assert passes.text == csv_text(schedule(name), 4, plan.num_microbatches)
    assert "c.compile.enable = False" in module.text


def test_frameworks_with_orders_of_their_own_are_refused() -> None:
    with pytest.raises(NoFeasiblePlan, match="megatron runs no order of passes but its own; --for torchtitan"):
        for_stages(job(target="megatron"))


def test_stages_are_searched_with_comparable_schedules_and_replicas_that_are_alike() -> None:
    stages = for_stages(job())
    assert [f"{c.subject} {c.operator} {c.value}" for c in stages.constraints] == [
        "pp = 4",
        "pp >= 2",
        "replicas = equal",
        "schedule = any",
        "schedule != zb-h2",
        "schedule != dualpipe",
        "schedule != chimera",
        "schedule != bitpipe",
    ]


def test_an_interrupt_leaves_the_best_order_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not searched any more counts with its closed form, so that the bound still holds."""
    solved = order.find_order
    calls: list[int] = []

    def interrupted(*args: Any, **rest: Any) -> order.Ordered:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return solved(*args, **rest)

    monkeypatch.setattr(order, "find_order", interrupted)
    outcome = make_plan(CLUSTER, MODEL, job("vpp <= 2"), references=False)
    assert len(calls) == 2
    assert outcome.search.status == "interrupted"
    assert outcome.plan.virtual_stages == 1
    assert outcome.certificate.lower_bound <= found().certificate.lower_bound


def test_too_many_passes_are_refused_with_a_remedy() -> None:
    message = r"4 stages and 128 micro-batches, 1,536 passes, .* up to 1,000; ask for fewer with `pp <= 2`"
    with pytest.raises(SpecError, match=message):
        make_plan(CLUSTER, MODEL, job("micro_batch = 1", batch=128), references=False)


@pytest.mark.parametrize(("texts", "batch"), [(("pp = 4",), 512), (("dp = 2",), 1024), (("pp = 2", "dp = 1"), 900)])
def test_the_remedies_for_too_many_passes_suffice(texts: tuple[str, ...], batch: int) -> None:
    """With every set of constraints that the message offers there are at most a thousand passes, whatever the plan."""
    with pytest.raises(SpecError) as refused:
        make_plan(CLUSTER, MODEL, builders.job(batch, "schedule = search", "micro_batch = 1", *texts), references=False)
    advice = str(refused.value).partition("ask for fewer with")[2]
    offered = [part for part in advice.split(", or ") if "`" in part]
    assert "global batch of at most" in offered[-1]
    for part in offered:
        limits = {"dp": 1, "micro_batch": 1, **parse_all(part)}
        samples = int(part.partition("at most ")[2].split()[0]) if "at most" in part else batch
        assert 3 * limits["pp"] * samples / (limits["micro_batch"] * limits["dp"]) <= 1000


def parse_all(text: str) -> dict[str, int]:
    """Return the limits that stand between backticks in `text`."""
    found = (parse_constraint(written) for written in text.split("`")[1::2])
    return {constraint.subject: int(constraint.value) for constraint in found}


def test_another_schedule_beside_it_is_refused() -> None:
    """A plan has one order; what is excluded by name may still be excluded."""
    for text in ("schedule = 1f1b", "schedule != search"):
        with pytest.raises(NoFeasiblePlan, match=f"no plan satisfies 'schedule = search' and '{text}' together"):
            make_plan(CLUSTER, MODEL, job(text), references=False)
    assert make_plan(CLUSTER, MODEL, job("schedule != zbv"), references=False).plan.schedule == SEARCHED


def test_messages_tell_what_was_written_only() -> None:
    """What the search for stages demands on top is part of the wish for an order."""
    with pytest.raises(NoFeasiblePlan, match="satisfies 'pp = 4', 'vpp = 5', 'schedule = search': ") as refused:
        make_plan(CLUSTER, MODEL, job("vpp = 5"), references=False)
    assert [repair.change for repair in refused.value.repairs] == ["drop the constraint 'vpp = 5'"]


def test_why_not_another_schedule(tmp_path: Path) -> None:
    """A question takes the place of what it contradicts."""
    answer = why_not(file(tmp_path), "schedule = 1f1b")
    assert answer.outcome is not None
    assert answer.outcome.plan.schedule == "1f1b"
    assert answer.outcome.plan.num_stages == found().plan.num_stages == 4
    fewer = why_not(file(tmp_path), "pp = 2").outcome
    assert fewer is not None
    assert (fewer.plan.schedule, fewer.plan.num_stages) == (SEARCHED, 2)


def test_the_constraint_is_a_schedule_like_others() -> None:
    assert parse_constraint("schedule = search").value == SEARCHED
    with pytest.raises(SpecError, match="or search; did you mean search"):
        parse_constraint("schedule = serch")
