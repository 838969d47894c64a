"""The report on a plan: on one screen, and true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.domain.job import Constraint
from planner.pipeline.observed import AT_A_GLANCE, glance, observe
from planner.report.plan import idle_lines, plan_text, proof, training_lines
from planner.report.stages import runs, stage_table
from report.report_cases import Case

SCREEN = 100
"""[columns]"""


def long_plan_text(mixed: Case, width: int = SCREEN) -> str:
    plan = mixed.plan([("h100", 2)] * 30 + [("a100", 2)] * 33)
    other = mixed.plan([("h100", 4)] * 15 + [("a100", 6)] * 11)
    outcome = mixed.outcome(plan, (other,) * 7)
    defaults = ("framework megatron", "headroom 10%", "precision fp16, since not every device does bf16")
    parts = (mixed.cluster, mixed.model, mixed.job)
    step = glance(plan, *parts)
    return plan_text(outcome, *parts, step=step, defaults=defaults, hint="-o plan.yaml keeps it", width=width)


def test_a_page_is_no_wider_than_a_screen(mixed: Case) -> None:
    """No line of a report with long names, folded stages and wordy runners-up has more than 100 columns."""
    assert max(map(len, long_plan_text(mixed).splitlines())) <= SCREEN


def test_sixty_four_stages_fit_a_screen(mixed: Case) -> None:
    """63 stages of two kinds, the first with the embedding and the last with the head, are four rows."""
    lines = long_plan_text(mixed).splitlines()
    assert len(lines) <= 64
    stages = [line.split()[0:2] for line in lines if " 2   8  selective" in line]
    assert stages == [["0", "h100"], ["1-29", "x29"], ["30-61", "x32"], ["62", "a100"]]


def test_a_step_is_drawn_unasked_where_that_is_quick(mixed: Case, small: Case) -> None:
    """63 stages and 128 micro-batches are 16,128 passes; not twice as many, and not what a single stage does."""
    assert "a step, stage by stage" in long_plan_text(mixed)
    plan = small.plan([("h100-sxm-80gb", 16), ("h100-sxm-80gb", 16)])
    parts = (small.cluster, small.model, small.job)
    assert glance(plan, *parts) == observe(plan, *parts)
    assert glance(replace(plan, num_microbatches=AT_A_GLANCE // 4 + 1), *parts) is None
    assert glance(small.plan([("h100-sxm-80gb", 32)]), *parts) is None


def test_a_folded_row_shows_the_fullest_of_its_stages(mixed: Case) -> None:
    """Earlier stages hold more micro-batches: the row's memory is that of its first stage."""
    plan = mixed.plan([("h100", 2)] * 30 + [("a100", 2)] * 33)
    found = runs(plan, mixed.predicted(plan))
    assert [(run.first, len(run.stages)) for run in found] == [(0, 1), (1, 29), (30, 32), (62, 1)]
    assert found[1].fullest is found[1].predictions[0]


def test_stages_that_differ_are_not_folded(mixed: Case) -> None:
    """Unlike layers, groups or recompute are rows of their own."""
    plan = mixed.plan([("h100", 60), ("h100", 20), ("a100", 20), ("a100", 26)])
    changed = replace(plan, stages=(*plan.stages[:3], replace(plan.stages[3], num_recomputed=5)))
    assert len(runs(changed, mixed.predicted(changed))) == 4
    assert "5/26 full + selective" in "\n".join(stage_table(changed, mixed.predicted(changed), mixed.cluster))


def test_the_page_tells_the_figures_of_the_prediction(small: Case) -> None:
    """Step time, shares of the references, gap and search stand on the page."""
    plan = small.plan([("h100-sxm-80gb", 32)], tp=8, dp=2)
    outcome = small.outcome(plan)
    text = plan_text(outcome, small.cluster, small.model, small.job, runs_on=("megatron",))
    assert "pp 1, dp 2, tp 8, micro-batch 1, 64 micro-batches a step, ZeRO 1, 1f1b, 16 devices" in text
    assert "within 0.8%: no plan can be faster than" in text
    assert "40.0% of all devices at their peak; 97.0% of the sum of what each group could do alone" in text
    assert "\nsearch:  1.2 s, 24,961 subproblems, 24,938 pruned by bounds, 23 solved by CP-SAT\n" in text
    assert "\nruns on  megatron\n" in text
    assert f"MFU {outcome.prediction.model_flops_utilization:.1%}" in text


def test_defaults_are_marked_and_reasons_told(mixed: Case) -> None:
    """A value that nobody chose has a star; why it is not the usual one stands below."""
    text = long_plan_text(mixed)
    assert "bf16*, megatron*, head-room 10%*   * default" in " ".join(text.split("\n")[3].split(",", 1)[1:]) + (
        " ".join(text.split())
    ).replace("* * default", "*   * default")
    assert "precision fp16, since not every device does bf16" in text
    assert "128 x 4,096 tokens" in text


def test_parts_of_the_step_come_largest_first(small: Case) -> None:
    """The bars fall, and matrix products lead."""
    text = plan_text(small.outcome(small.plan([("h100-sxm-80gb", 32)], dp=2)), small.cluster, small.model, small.job)
    lines = text.split("where a step goes")[1].split("\n\n")[0].splitlines()[1:]
    lengths = [line.count("█") for line in lines]
    assert lines[0].split()[0] == "matmul"
    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize(
    ("stages", "dp", "why"),
    [
        ([("h100-sxm-80gb", 32)], 1, "8 of 16 h100-sxm-80gb: no faster plan that uses them was found"),
        ([("h100-sxm-80gb", 32)], 2, ""),
    ],
)
def test_idle_devices_have_a_reason(small: Case, stages: list[tuple[str, int]], dp: int, why: str) -> None:
    """One stage of tp 8 leaves 8 of 16 devices idle; two replicas leave none."""
    assert why in " ".join(idle_lines(small.plan(stages, dp=dp), small.cluster, small.job))
    assert bool(why) == bool(idle_lines(small.plan(stages, dp=dp), small.cluster, small.job))


def test_too_few_idle_devices_say_so(small: Case) -> None:
    """Three replicas of tp 5 use 15 of 16 devices; one more is too few for a stage of three replicas."""
    text = " ".join(idle_lines(small.plan([("h100-sxm-80gb", 32)], tp=5, dp=3), small.cluster, small.job))
    assert "1 of 16 h100-sxm-80gb: too few for one more stage of 3 replicas" in text


def test_devices_that_the_user_forbade_say_so(small: Case) -> None:
    """A constraint on devices is the reason where there is one."""
    limit = Constraint(subject="devices", operator="<=", value="8", text="use at most 8 devices")
    job = replace(small.job, constraints=(limit,))
    text = " ".join(idle_lines(small.plan([("h100-sxm-80gb", 32)]), small.cluster, job))
    assert "as wanted (use at most 8 devices)" in text


def test_days_and_cost_of_the_whole_training(small: Case) -> None:
    """864,000 s of steps are 10 days; 8 devices at 2.50 an hour for 240 hours cost 4,800."""
    group = replace(small.cluster.groups[0], price_per_device_hour=2.5)
    cluster = replace(small.cluster, groups=(group,))
    plan = small.plan([("h100-sxm-80gb", 32)])
    prediction = replace(small.predicted(plan), tokens_per_second=1e6)
    job = replace(small.job, total_tokens=864e9)
    text = " ".join(training_lines(plan, prediction, cluster, job))
    assert "10.0 days for 864 B tokens" in text
    assert "cost 4,800 at the prices given" in text


def test_an_optimal_plan_is_called_optimal(small: Case) -> None:
    """A gap of nothing is no percentage; a search that was stopped says so; no bound is no proof."""
    outcome = small.outcome(small.plan([("h100-sxm-80gb", 32)]), status="time_limit")
    certificate = outcome.certificate
    assert proof(replace(certificate, lower_bound=certificate.objective)).startswith("optimal: no plan is faster than")
    assert proof(certificate, outcome.search).endswith("(stopped by the time limit)")
    assert proof(replace(certificate, lower_bound=0.0)).startswith("nothing is proved yet")


def test_a_ceiling_of_whole_layers_that_binds_is_explained(mixed: Case) -> None:
    """Where whole layers alone keep equal replicas below what the groups do, the page says that links do not matter."""
    text = " ".join(long_plan_text(mixed).split())
    assert "whole layers allow equal replicas 98.1% of it (no link or memory changes that" in text
    outcome = mixed.outcome(mixed.plan([("h100", 63), ("a100", 63)]))
    assert outcome.references is not None
    free = replace(outcome, references=replace(outcome.references, whole_layer_ceiling=1.05))
    assert "no link or memory" not in plan_text(free, mixed.cluster, mixed.model, mixed.job)


def test_kinds_of_pipelines_have_a_table_each(mixed: Case) -> None:
    """Each kind says how many replicas it has and what they work on; stages are numbered on."""
    first = replace(mixed.plan([("h100", 126)]), num_microbatches=6, short_replicas=1)
    other = replace(mixed.plan([("a100", 63), ("a100", 63)]), num_microbatches=2)
    plan = replace(first, other_pipelines=(other,))
    alone = mixed.predicted(first).stages + mixed.predicted(other).stages
    lines = stage_table(plan, replace(mixed.predicted(first), stages=alone), mixed.cluster)
    heads = [line for line in lines if line.startswith("pipelines")]
    assert [line.split(":")[0] for line in heads] == ["pipelines 0", "pipelines 1"]
    assert "with 6 micro-batches" in heads[0]
    assert "(1 replica on one less)" in heads[0]
    assert [line.split()[0] for line in lines if " h100 " in line or " a100 " in line] == ["0", "1", "2"]
