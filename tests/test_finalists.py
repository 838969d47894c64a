"""Which of the program's best plans is proposed: the proof and the replay need not agree."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from builders import drawn
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Prediction
from planner.errors import NoFeasiblePlan
from planner.pipeline.finalists import CLEARLY, Finalist, choose
from planner.pipeline.plan import make_plan


def finalist(objective: float, step: float, *layers: int) -> Finalist:
    """Return a plan of so many layers a stage, which is uniform where they are alike."""
    starts = [sum(layers[:index]) for index in range(len(layers) + 1)]
    plan = Plan(
        stages=tuple(
            Stage(group="g", first_layer=first, last_layer=after - 1, strategy=Strategy())
            for first, after in pairwise(starts)
        ),
        schedule="1f1b",
        num_replicas=1,
        micro_batch=1,
        num_microbatches=8,
        zero_stage=0,
    )
    prediction = Prediction(
        step_time=step,
        tokens_per_second=1.0,
        samples_per_second=1.0,
        num_devices=len(layers),
        model_flops_utilization=0.5,
        bubble_fraction=0.0,
        time=(("matmul", step),),
        stages=(),
    )
    return Finalist(plan=plan, objective=objective, prediction=prediction)


@pytest.mark.parametrize(
    ("found", "gap", "wanted"),
    [
        # Two within the gap of the bound: the faster in the replay.
        ([finalist(10.05, 10.0, 3, 5), finalist(10.0, 10.04, 5, 3)], 0.01, 0),
        # Slower in the measure by more than the gap, hardly faster in the replay: what is proved.
        ([finalist(10.5, 10.0, 3, 5), finalist(10.0, 10.09, 5, 3)], 0.01, 1),
        # Faster in the replay by more than the gap: what the replay says.
        ([finalist(10.5, 10.0, 3, 5), finalist(10.0, 10.5, 5, 3)], 0.01, 0),
        ([finalist(10.5, 10.0, 3, 5), finalist(10.0, 10.5, 5, 3)], 0.06, 0),
        # With a small gap too, a percent is needed.
        ([finalist(10.5, 10.0, 3, 5), finalist(10.0, 10.05, 5, 3)], 0.0, 1),
        # A uniform layout within the gap of the fastest goes first, be it proved or all unproved.
        ([finalist(10.0, 10.0, 3, 5), finalist(10.0, 10.05, 4, 4)], 0.01, 1),
        ([finalist(12.0, 10.0, 3, 5), finalist(12.0, 10.05, 4, 4), finalist(10.0, 11.0, 5, 3)], 0.01, 1),
        ([finalist(10.0, 10.0, 3, 5), finalist(10.0, 10.2, 4, 4)], 0.01, 0),
    ],
)
def test_the_proposed_one(found: list[Finalist], gap: float, wanted: int) -> None:
    """By proof where the replay does not clearly contradict."""
    assert choose(found, 10.0, gap) is found[wanted]


@pytest.mark.parametrize("seed", range(70, 90))
def test_no_runner_up_replays_clearly_faster(seed: int) -> None:
    """Over random problems, tied models and slow links among them."""
    asked = drawn(seed)
    job = replace(asked.job, constraints=(), global_batch=8 * asked.job.global_batch)
    try:
        outcome = make_plan(asked.cluster, asked.model, job, references=False)
    except NoFeasiblePlan:
        return
    steps = [other.prediction.step_time for other in outcome.alternatives]
    assert min(steps, default=float("inf")) * (1 + max(job.gap, CLEARLY)) >= outcome.prediction.step_time
