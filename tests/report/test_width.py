"""Texts fit the page, whatever the plan: 80 columns of a usual terminal, 60 and 40 of a narrow one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from planner.domain.job import Constraint
from planner.domain.plan import SEARCHED, Plan
from planner.domain.prediction import Outcome
from planner.errors import Problem, Repair
from planner.pipeline import plan_from_layout
from planner.pipeline.observed import observe
from planner.report.explain import explain_text
from planner.report.gantt import gantt
from planner.report.plan import plan_text
from planner.report.prediction import prediction_text
from planner.schedules import rows, schedule
from planner.specs.layout import parse_layout
from report.report_cases import Case

WIDTHS = (100, 80, 60, 40)
"""[columns]"""
NOT_PIPELINED = Constraint(subject="pp", operator="=", value="1", text="pp = 1")
REPAIRS = tuple(
    Repair(change=change, effect="104.4 of 126.9 GiB on the fullest device", step_time=17.6, peak_memory=1e11)
    for change in ("--headroom 0.05", "devices with 141 GiB, such as h200-sxm-141gb: 12,288 nodes of them")
)


@dataclass(frozen=True)
class Compared:
    """What the pipeline says of another plan."""

    outcome: Outcome
    constraint: Constraint = NOT_PIPELINED
    infeasible: str = ""
    slower_by: float = 0.125
    differences: tuple[tuple[str, float, float], ...] = (("tensor_collectives", 1.25, 123.0),)


def cases(mixed: Case, small: Case) -> Iterator[tuple[str, Case, Plan]]:
    """Yield unlike groups, many stages, chunks, two directions, an order of its own, and two kinds of pipelines."""
    yield "unlike groups", mixed, mixed.plan([("h100", 40), ("a100", 30), ("a100", 30), ("l40s", 26)], dp=4)
    yield "many stages", mixed, mixed.plan([("h100", 2)] * 30 + [("a100", 2)] * 33)
    for text in ("tp=2,pp=4,cp=2,vpp=4,recompute=selective", "tp=1,pp=8,schedule=dualpipe", "tp=8,schedule=1f1b"):
        layout = parse_layout(f"{text},gbs=128")
        yield text, small, plan_from_layout(layout, small.cluster, small.model, small.job)[0]
    passes = rows(schedule("zb-h1").passes(4, 128))
    yield "search", small, replace(small.plan([("h100-sxm-80gb", 8)] * 4, tp=4), schedule=SEARCHED, order=passes)
    kinds = (mixed.plan([("h100", 126)]), mixed.plan([("a100", 63), ("a100", 63)]))
    yield "kinds", mixed, replace(kinds[0], num_microbatches=6, short_replicas=1, other_pipelines=kinds[1:])


def texts(case: Case, plan: Plan, width: int) -> Iterator[str]:
    """Yield what plan, predict, explain and timeline print."""
    parts = (case.cluster, case.model, case.job)
    step, outcome = observe(plan, *parts), case.outcome(plan, (plan,) * 3)
    yield plan_text(outcome, *parts, step=step, defaults=["precision bf16"], runs_on=["megatron"], width=width)
    problems = [Problem("stages[0]", "needs 104.38 GiB on each, 32.38 GiB more than there is", code="PL108")]
    yield prediction_text(plan, outcome.prediction, problems, *parts, step=step, repairs=REPAIRS, width=width)
    yield prediction_text(plan, outcome.prediction, (), *parts, width=width)
    other = case.outcome(replace(plan, zero_stage=0), (plan,))
    compared = [Compared(other)]
    yield explain_text(plan, outcome.prediction, *parts, step=step, found=other, comparisons=compared, width=width)
    yield gantt(plan, step, width).text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_longer_than_the_page(mixed: Case, small: Case, width: int) -> None:
    for name, case, plan in cases(mixed, small):
        for text in texts(case, plan, width):
            longest = max(text.splitlines(), key=len)
            assert len(longest) <= width, (name, longest)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_narrow_page_cuts_no_number(mixed: Case, width: int) -> None:
    """Each stage's times, its memory and the limit, each part of its memory, and whole words in the legend."""
    plan = mixed.plan([("h100", 40), ("a100", 30), ("a100", 31), ("l40s", 25)], dp=4)
    _, text, _, _, drawn = texts(mixed, plan, width)
    words, prediction = text.split(), mixed.predicted(plan)
    for stage in prediction.stages:
        figures = [f"{size / 2**30:,.1f}" for _, size in stage.memory if size > 0]
        assert {*figures, f"{stage.peak_memory / 2**30:,.1f}/{stage.memory_limit / 2**30:,.1f}"} <= {*words}
        assert f"{1e3 * stage.forward:,.0f} + {1e3 * stage.backward:,.0f}" in " ".join(words)
    assert "= gradient exchange" in " ".join(drawn.split())
