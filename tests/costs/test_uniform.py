"""The closed form of uniform pipelines says what the replay says, one by one or many at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, product

import numpy as np
import pytest

from planner.costs import plan_cost
from planner.costs.batch import stack, structure
from planner.costs.uniform import Kind, Uniform, UniformCost, uniform_cost
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.pipeline.layout import plan_from_layout
from planner.simulate import predict
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.layout import parse_layout
from planner.specs.model import model_from_record

CLUSTER = read_cluster("8x8:a100-sxm-80gb")
JOB = Job(global_batch=256, sequence=2048, precision="bf16", framework="megatron")
SIZES = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008}
RECORD = {"family": "llama", **SIZES, "vocab_size": 32000, "max_position_embeddings": 4096}


def llama() -> Model:
    """Return Llama 2 7B."""
    return model_from_record(RECORD, "test")


def closed(plan: Plan, job: Job, stage: Stage, *, policy: str = "none") -> tuple[Kind, Uniform]:
    """Return the question that the closed form is asked about a plan of even stages."""
    model = replace(llama(), name="", spec=())
    layers = [one.num_layers for one in plan.stages]
    middle = layers[1:-1] or [1]
    layout = Uniform(
        model=model,
        job=job,
        framework=catalog.framework(job.framework),
        group=CLUSTER.groups[0],
        strategy=Strategy(
            degrees=(("tp", stage.strategy.degree("tp")), ("cp", stage.strategy.degree("cp"))),
            sequence_parallel=stage.strategy.sequence_parallel,
        ),
        micro_batch=plan.micro_batch,
        num_replicas=plan.num_replicas,
        num_microbatches=plan.num_microbatches,
        num_stages=plan.num_stages,
        virtual_stages=plan.virtual_stages,
        first_layers=layers[0],
        second_layers=middle[0],
        middle_layers=max(middle),
        middle_place=1 + middle.index(max(middle)),
        last_layers=layers[-1],
    )
    return Kind(zero_stage=plan.zero_stage, policy=policy, single_stage=plan.num_stages == 1), layout


def both(text: str, framework: str = "megatron") -> tuple[float, float, float, float]:
    """Return step time and peak memory of a layout by the closed form, and by the replay."""
    plan, job = plan_from_layout(parse_layout(text), CLUSTER, llama(), replace(JOB, framework=framework))
    policy = "full" if plan.stages[0].num_recomputed else plan.stages[0].recompute
    cost = uniform_cost(*closed(plan, job, plan.stages[0], policy=policy))
    costs = plan_cost(plan, CLUSTER, llama(), job, catalog.framework(framework))
    prediction = predict(plan, costs, CLUSTER, llama(), job)
    return float(cost.step_time), float(cost.peak_memory), prediction.step_time, prediction.peak_memory


ONE_CHUNK = [
    f"tp={tp},pp={pp},dp={64 // tp // pp},mbs={mbs},gbs=256,zero={zero},recompute={recompute}"
    for tp, pp, mbs, zero, recompute in product((1, 4), (1, 2, 8), (1, 4), (0, 1), ("none", "full"))
]


@pytest.mark.parametrize("text", ONE_CHUNK)
@pytest.mark.parametrize("framework", ["megatron", "nanotron"])
def test_the_closed_form_is_near_the_replay(text: str, framework: str) -> None:
    """Of 1F1B it is within 1%, and the memory of the fullest stage is the same."""
    time, memory, replayed, held = both(text, framework)
    assert time == pytest.approx(replayed, rel=0.01)
    assert memory == pytest.approx(held)


@pytest.mark.parametrize("cut", [(9, 3, 10, 10), (4, 10, 9, 9), (2, 3, 13, 14), (8, 8, 8, 8)])
def test_the_memory_of_unlike_middles_is_the_replays(cut: tuple[int, ...]) -> None:
    """The second stage holds most micro-batches, a larger one behind it more layers: the fullest counts."""
    text = "tp=4,pp=4,dp=4,mbs=4,gbs=256,recompute=none"
    plan, job = plan_from_layout(parse_layout(text), CLUSTER, llama(), JOB)
    ends = list(accumulate(cut))
    stages = [replace(s, first_layer=e - n, last_layer=e - 1) for s, n, e in zip(plan.stages, cut, ends, strict=True)]
    plan = replace(plan, stages=tuple(stages))
    costs = plan_cost(plan, CLUSTER, llama(), job, catalog.framework("megatron"))
    held = predict(plan, costs, CLUSTER, llama(), job).peak_memory
    assert uniform_cost(*closed(plan, job, plan.stages[0])).peak_memory == pytest.approx(held)


@pytest.mark.parametrize("text", ["tp=4,pp=4,vpp=2,dp=4", "tp=2,pp=8,vpp=4,dp=4", "tp=8,pp=2,vpp=8,dp=4"])
def test_the_closed_form_is_near_the_replay_of_chunks(text: str) -> None:
    """Interleaved it is within 4%: the head's chunk is longer than the others."""
    time, memory, replayed, held = both(f"{text},mbs=1,gbs=256")
    assert time == pytest.approx(replayed, rel=0.04)
    assert memory == pytest.approx(held, rel=0.01)


def test_many_layouts_at_once_cost_what_each_costs() -> None:
    """Stacked layouts of one kind are priced alike, to the last digits."""
    plans = [
        plan_from_layout(parse_layout(text), CLUSTER, llama(), JOB)[0]
        for text in ("tp=2,pp=2,dp=16,mbs=1", "tp=4,pp=4,dp=4,mbs=2", "tp=8,pp=4,dp=2,mbs=4", "tp=2,pp=8,dp=4,mbs=1")
    ]
    asked = [closed(plan, JOB, plan.stages[0]) for plan in plans]
    assert len({(kind, structure(layout)) for kind, layout in asked}) == 1
    together: UniformCost = uniform_cost(asked[0][0], stack([layout for _, layout in asked]))
    alone = [uniform_cost(kind, layout) for kind, layout in asked]
    assert together.step_time == pytest.approx(np.array([cost.step_time for cost in alone]), rel=1e-12)
    assert together.peak_memory == pytest.approx(np.array([cost.peak_memory for cost in alone]), rel=1e-12)


def test_unlike_layouts_are_not_stacked() -> None:
    """Another device, kernel or kind of layer is another structure; another number is not."""
    plan, _ = plan_from_layout(parse_layout("tp=2,pp=2,dp=16,mbs=1"), CLUSTER, llama(), JOB)
    _, layout = closed(plan, JOB, plan.stages[0])
    other = replace(layout.group, device=catalog.device("h100"))
    assert structure(replace(layout, micro_batch=3)) == structure(layout)
    assert structure(replace(layout, group=other)) != structure(layout)
    assert structure(replace(layout, framework=catalog.framework("fsdp"))) != structure(layout)
