"""Steps whose times can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from planner.costs import Hop, PlanCost, StageCost
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Prediction, StagePrediction
from planner.simulate import Timeline, timeline
from planner.units import GIB

COST = StageCost(
    forward=1.0,
    backward=2.0,
    sync=1.0,
    memory=(),
    peaks=(("forward_backward", 0.0), ("optimizer_creation", 0.0), ("optimizer_step", 0.0)),
    parts=(),
    in_flight=1,
)


def made(
    stages: int,
    microbatches: int,
    *,
    schedule: str = "",
    chunks: int = 1,
    hop: float = 0.0,
    blocking: bool = False,
    sync: float = 1.0,
) -> tuple[Plan, Timeline]:
    """Return a plan whose stages take 1 s forward and 2 s backward, and its step."""
    between = Hop(forward=hop, backward=hop)
    cost = replace(COST, sync=sync, chunks=((1.0 / chunks, 2.0 / chunks),) * chunks if chunks > 1 else ())
    plan = Plan(
        stages=tuple(
            Stage(
                group="g",
                first_layer=index,
                last_layer=index,
                later_chunks=tuple((chunk * stages + index,) * 2 for chunk in range(1, chunks)),
                strategy=Strategy(),
            )
            for index in range(stages)
        ),
        schedule=schedule or ("1f1b" if chunks == 1 else "interleaved"),
        num_replicas=1,
        micro_batch=1,
        num_microbatches=microbatches,
        zero_stage=0,
        virtual_stages=chunks,
    )
    costs = PlanCost(
        stages=(cost,) * stages,
        hops=(between,) * (stages - 1),
        wrap=between if chunks > 1 else None,
        step_overhead=0.0,
        blocking=blocking,
    )
    return plan, timeline(plan, costs)


def filled(plan: Plan) -> Prediction:
    """Return a prediction of a plan of `made`, whose stages fill 1, 2, ... of as many GiB as they are and one more."""
    number = len(plan.all_stages)
    stages = (
        StagePrediction(
            forward=1.0,
            backward=2.0,
            sync=0.0,
            memory=(("weights", (index + 1) * GIB),),
            peaks=(),
            memory_limit=(number + 1) * GIB,
            device_memory=(number + 1) * GIB,
            in_flight=1,
        )
        for index in range(number)
    )
    return Prediction(
        step_time=1.0,
        tokens_per_second=1.0,
        samples_per_second=1.0,
        num_devices=number,
        model_flops_utilization=0.5,
        bubble_fraction=0.0,
        time=(("matmul", 1.0),),
        stages=tuple(stages),
    )
