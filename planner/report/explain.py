"""Why a plan is as it is: what binds, where the time goes, what the runners-up lose, and why not otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from planner.domain.cluster import Cluster
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Certificate, Outcome, Prediction, busiest_stage
from planner.report.confidence import confidence_lines
from planner.report.figures import gib, percent, plural, seconds, words
from planner.report.header import header
from planner.report.layout import WIDTH, bullet, fitted, heading, joined, labelled
from planner.report.plan import NOTHING, decision, proof, runner_up_table, speed, where_time_goes
from planner.report.prediction import memory_lines
from planner.report.problems import rejection_lines, spans
from planner.report.ranks import rank_lines
from planner.report.stages import stage_table
from planner.report.staleness import stale_lines
from planner.report.strip import strip_lines
from planner.schedules import schedule_of
from planner.simulate import Timeline

if TYPE_CHECKING:
    from planner.placement import Placement

TIGHT = 0.97
"""[-] share of the limit from which on memory is said to bind."""
EVEN = 0.02
"""[-] difference of stage times below which no single stage is the bottleneck."""


class Comparison(Protocol):
    """The answer to "why not?", as the pipeline gives it."""

    @property
    def constraint(self) -> Constraint:
        """What was asked."""

    @property
    def outcome(self) -> Outcome | None:
        """The best plan under the constraint, None if there is none."""

    @property
    def infeasible(self) -> str:
        """Why there is none."""

    @property
    def slower_by(self) -> float:
        """[-] of the step time; negative if it is faster."""

    @property
    def differences(self) -> tuple[tuple[str, float, float], ...]:
        """(part, seconds of the plan, seconds of the alternative)."""


def explain_text(
    plan: Plan,
    prediction: Prediction,
    cluster: Cluster,
    model: Model,
    job: Job,
    *,
    step: Timeline | None = None,
    certificate: Certificate | None = None,
    placed: Placement | None = None,
    found: Outcome | None = None,
    comparisons: Sequence[Comparison] = (),
    width: int = WIDTH,
) -> str:
    """Return the explanation of a plan.

    `step` is what its stages do, as `planner.pipeline.observed.glance` tells; `found` is what a search for the same job
    finds, if one was made.
    """
    lines = [
        *header(cluster, model, job, (), width),
        "",
        *stage_table(plan, prediction, cluster, width),
        "",
        *labelled("plan", decision(plan), width),
        *(rank_lines(placed, width) if placed else []),
        *labelled("step", speed(prediction), width),
        *stale_lines(plan, width),
        *confidence_lines(prediction, width),
        *(labelled("proof", proof(certificate, of=plan), width) if certificate else []),
        *strip_lines(plan, prediction, step, width),
        "",
        "what binds",
        *(line for text in binding(plan, prediction) for line in bullet(text, width)),
        "",
        *where_time_goes(plan, prediction, width),
        "",
        *memory_lines(plan, prediction, width),
    ]
    if found:
        lines += _searched(plan, prediction, found, width)
    for comparison in comparisons:
        lines += ["", *why_not_lines(comparison, width)]
    return "\n".join(lines) + "\n"


def binding(plan: Plan, prediction: Prediction) -> list[str]:
    """Return sentences on what keeps the plan from being faster."""
    stages = prediction.stages
    texts = [_pace(plan, prediction)] if len(plan.all_stages) > 1 else []
    full = [index for index, stage in enumerate(stages) if stage.peak_memory > TIGHT * stage.memory_limit]
    if full:
        fullest = max(full, key=lambda index: stages[index].peak_memory / stages[index].memory_limit)
        part, size = max(stages[fullest].memory, key=lambda item: item[1])
        texts.append(
            f"memory of {plural(len(full), 'stage')} ({spans(full)}): stage {fullest} fills "
            f"{percent(stages[fullest].peak_memory / stages[fullest].memory_limit)} of its limit, "
            f"most of it {words(part)} ({gib(size)} GiB)"
        )
    else:
        share = max(stage.peak_memory / stage.memory_limit for stage in stages)
        texts.append(f"not memory: the fullest stage fills {percent(share)} of its limit")
    filling = (plan.num_stages - 1) / plan.virtual_stages
    if prediction.bubble_fraction > 0.1 and not plan.other_pipelines:
        least = (
            f"; filling and draining {plural(plan.num_stages, 'stage')} with {plan.num_microbatches} micro-batches"
            f" alone costs {percent(filling / (plan.num_microbatches + filling))}"
        )
        known = schedule_of(plan).orders is None  # others fill and drain in ways of their own
        texts.append(f"stages idle {percent(prediction.bubble_fraction)} of the time{least if known else ''}")
    name, time = max(prediction.time, key=lambda item: item[1])
    texts.append(f"{words(name)} takes the most time, {percent(time / prediction.step_time)} of the step")
    return texts


def _pace(plan: Plan, prediction: Prediction) -> str:
    """Return which stage the others wait for; where pipelines are of several kinds, what each kind takes."""
    stages = prediction.stages
    if plan.other_pipelines:
        return _paces(plan, prediction)
    busiest = busiest_stage(plan, stages)
    mean = sum(stage.time for stage in stages) / len(stages)
    if stages[busiest].time > mean * (1 + EVEN):
        return (
            f"stage {busiest} on {plan.stages[busiest].group} is the bottleneck: {seconds(stages[busiest].time)} for a "
            f"micro-batch, {percent(stages[busiest].time / mean - 1)} more than the mean of the stages"
        )
    return f"no single stage: all take {seconds(mean)} for a micro-batch within {percent(EVEN)}"


def _paces(plan: Plan, prediction: Prediction) -> str:
    """Return how long the slowest stage of each kind works, and why there are several kinds."""
    texts, start = [], 0
    for kind, pipeline in enumerate(plan.pipelines):
        own = prediction.stages[start : start + pipeline.num_stages]
        start += pipeline.num_stages
        busy = pipeline.num_microbatches * max(stage.time for stage in own)
        share = percent(pipeline.samples / plan.global_batch)
        texts.append(f"pipelines {kind} on {pipeline.stages[0].group} work {seconds(busy)} on {share} of the samples")
    return (
        f"each group works at its own pace: {', '.join(texts)}; they meet at the exchange of gradients, weighted by"
        " samples, and none waits for another's stages (--why-not 'replicas = equal' tells what equal ones would take)"
    )


def _searched(plan: Plan, prediction: Prediction, found: Outcome, width: int) -> list[str]:
    """Return what a search says: another plan if there is a better one, and the runners-up."""
    lines: list[str] = []
    if found.plan != plan:
        change = found.prediction.step_time / prediction.step_time - 1
        text = f"{decision(found.plan)}: {joined(f'{seconds(found.prediction.step_time)} ({change:+.1%})')}"
        lines += ["", *heading("a search for the same job finds another plan", width), *labelled("", text, width)]
    lines += runner_up_table(found, width)
    rejected = rejection_lines(dict(found.search.rejections), width)
    return [*lines, *([""] if rejected else []), *rejected]


def why_not_lines(comparison: Comparison, width: int = WIDTH) -> list[str]:
    """Return what the plan would lose or gain under a constraint."""
    title = heading(f"why not {comparison.constraint.text}?", width)
    outcome = comparison.outcome
    if outcome is None:
        return [*title, *labelled("", f"no plan is possible: {comparison.infeasible}", width)]
    slower = comparison.slower_by
    verdict = "as fast" if abs(slower) < 5e-4 else f"{percent(abs(slower))} {'slower' if slower > 0 else 'faster'}"
    text = f"{decision(outcome.plan)}: {joined(f'{seconds(outcome.prediction.step_time)}, {verdict}')}"
    rows = [
        [words(part), seconds(mine), seconds(other), f"{'-' if other < mine else '+'}{seconds(abs(other - mine))}"]
        for part, mine, other in comparison.differences
        if max(mine, other) > NOTHING * outcome.prediction.step_time
    ]
    head = ["part", "this plan", "that plan", "difference"]
    return [*title, *labelled("", text, width), *fitted(head, rows, width, right=",".join(head[1:]), indent=2)]
