"""What is trained on where a schedule changes that: how old the weights are that gradients are of, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from planner.domain.plan import Plan
from planner.report.layout import WIDTH, joined, labelled
from planner.schedules import Schedule, schedule_of

RUNS = 6
"""Runs of stages with the same number that are told one by one; of more the first and the last."""


def stale_lines(plan: Plan, width: int = WIDTH) -> list[str]:
    """Return `stale_text` behind its label."""
    text = stale_text(plan)
    return labelled("stale", text, width) if text else []


def stale_text(plan: Plan) -> str:
    """Return how each kind of pipeline trains, where it is not one step over the whole batch at the same weights."""
    texts = [
        f"{f'pipelines {kind}: ' if plan.other_pipelines else ''}{_told(pipeline, schedule_of(pipeline))}"
        for kind, pipeline in enumerate(plan.pipelines)
        if schedule_of(pipeline).changes_semantics
    ]
    return "; ".join(texts)


def stale_record(plan: Plan) -> dict[str, Any]:
    """Return how often weights are updated, where the schedule of one kind of pipeline changes what is trained."""
    listed = schedule_of(plan)
    return {"updates_per_step": listed.updates(plan.num_microbatches)} if listed.changes_semantics else {}


def stale_stage_record(plan: Plan, index: int) -> dict[str, Any]:
    """Return the same of a stage of one kind of pipeline: how old, how many versions, and predicted how far."""
    listed = schedule_of(plan)
    return weights_record(listed, index, plan.num_stages, plan.num_microbatches) if listed.changes_semantics else {}


def weights_record(listed: Schedule, rank: int, num_stages: int, num_microbatches: int) -> dict[str, Any]:
    """Return what a schedule that changes what is trained does with the weights of a rank."""
    shape = rank, num_stages, num_microbatches
    ahead, back = listed.predicted(*shape)
    return {
        "staleness": listed.staleness(*shape),
        "weight_versions": listed.weight_versions(*shape),
        **({"predicted_ahead": {"forward": ahead, "backward": back}} if listed.predictions(*shape) else {}),
    }


def _told(plan: Plan, listed: Schedule) -> str:
    """Return it in words."""

    def each(of: Callable[[int, int, int], int]) -> str:
        return by_stage([of(rank, plan.num_stages, plan.num_microbatches) for rank in range(plan.num_stages)])

    def ahead(way: int) -> str:
        return each(lambda *shape: listed.predicted(*shape)[way])

    updates = listed.updates(plan.num_microbatches)
    often = (
        f"after every micro-batch, {updates} times a step"
        if listed.updates_each
        else "while micro-batches are in flight"
    )
    texts = [
        f"{listed.name} changes what is trained: weights are updated {often}",
        f"staleness of gradients in updates: {each(listed.staleness)}",
        f"versions of the weights: {each(listed.weight_versions)}",
    ]
    if any(listed.predictions(rank, plan.num_stages, plan.num_microbatches) for rank in range(plan.num_stages)):
        texts.append(f"updates ahead to which they are predicted: forward {ahead(0)}; backward {ahead(1)}")
    return "; ".join(texts)


def by_stage(numbers: Sequence[int]) -> str:
    """Return the number of every stage, ``3 (stage 0), 1 (1-3)``; of many runs the first and the last."""
    runs = list(_runs(numbers))
    if len(runs) == 1:
        return f"{numbers[0]} on {joined('every stage' if len(numbers) > 1 else 'the stage')}"
    first, last = runs[0], runs[-1]
    if len(runs) > RUNS:
        return f"{_one(*first)} to {_one(*last)}"
    return ", ".join(_one(*run) for run in runs)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (number, first stage, last stage) of neighbours with the same number."""
    for number, found in groupby(enumerate(numbers), key=lambda item: item[1]):
        stages = [stage for stage, _ in found]
        yield number, stages[0], stages[-1]


def _one(number: int, first: int, last: int) -> str:
    return joined(f"{number} (stage {first})" if first == last else f"{number} (stages {first}-{last})")
