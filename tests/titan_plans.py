"""Random plans that torchtitan can run, by seed, and the layouts that they are."""

# ruff: noqa: S311 (plans are drawn, not secrets)

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

import builders
import transcripts
from planner.configurations.forms.torchtitan.catalog import MODULE, flavor
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.parallelism import AXES
from planner.schedules import schedule
from planner.specs.layout import Layout
from planner.specs.model import model_from_record, read_model
from planner.specs.plan import PlanFile

NAMED = (("llama3", "debugmodel"), ("llama3", "8B"), ("llama3", "1B"), ("qwen3", "0.6B"), ("qwen3", "14B"))
"""Models that torchtitan 0.3 knows by flavor."""
WRITTEN_OUT = ("llama-2-7b.json", "llama-140b.yaml")
"""Models that have to be written out."""
CHUNKED = ("interleaved", "interleaved", "breadth-first", "interleaved-zb", "zbv", "dualpipev")
"""Schedules of two chunks."""


@cache
def model(index: int) -> Model:
    """Return one of the models, the small one twice as often."""
    if index < len(NAMED):
        found = flavor(*NAMED[index], MODULE)
        assert found is not None
        return model_from_record(found.config, "model")
    return read_model(str(transcripts.ROOT / "model_specs" / WRITTEN_OUT[index - len(NAMED)]))


def divisor(draw: random.Random, number: int, most: int) -> int:
    return draw.choice([one for one in range(1, most + 1) if number % one == 0])


def drawn(seed: int) -> PlanFile:
    """Return the plan of a seed: up to 192 devices, layers cut as they come."""
    draw = random.Random(seed)
    chain = model(draw.choice((0, 0, *range(len(NAMED) + len(WRITTEN_OUT)))))
    spec = dict(chain.spec)
    heads = spec["num_key_value_heads"]
    assert isinstance(heads, int)
    tensor, context = divisor(draw, heads, 4), draw.choice((1, 1, 2, 4))
    pipeline = 1 if chain.tied else draw.choice((1, 1, 2, 2, 3, 4))
    chunks = draw.choice((1, 1, 2)) if pipeline > 1 and 2 * pipeline <= chain.num_layers else 1
    pipeline = min(pipeline, chain.num_layers // chunks)
    replicas = draw.choice((1, 2, 2, 3, 4))
    alone = replicas * context == 1
    free = max(tensor, pipeline, context) == 1
    zero = draw.choice((0, 2, 3)) if alone or free else draw.choice((2, 3))
    micro = draw.choice((1, 1, 2, 3))
    passes = draw.randint(1, 9) if pipeline == 1 else pipeline * draw.randint(1, 4)
    name = draw.choice(CHUNKED if chunks > 1 else ("1f1b", "gpipe"))
    if name == "dualpipev":
        passes = max(passes, 2 * pipeline)
    if name == "breadth-first" and zero:
        zero = 3  # which drops the weights of a chunk after its passes
    degrees = tuple((axis.name, {"tp": tensor, "cp": context}.get(axis.name, 1)) for axis in AXES)
    strategy = Strategy(
        degrees=tuple((name, degree) for name, degree in degrees if degree > 1),
        sequence_parallel=tensor > 1 and draw.random() < 0.8,
    )
    plan = Plan(
        stages=_stages(draw, chain.num_layers, name, pipeline, chunks, strategy),
        schedule=name,
        num_replicas=replicas,
        micro_batch=micro,
        num_microbatches=passes,
        zero_stage=zero,
        virtual_stages=chunks,
    )
    group = builders.group("chips", nodes=replicas * pipeline, per_node=tensor * context)
    sequence = 2 * tensor * context * draw.choice((16, 32, 128))
    return PlanFile(
        plan=plan,
        cluster=builders.cluster(group),
        model=chain,
        job=builders.job(plan.global_batch, sequence=sequence, framework="torchtitan", precision="bf16"),
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin=f"plan of seed {seed}",
    )


def _stages(
    draw: random.Random, layers: int, name: str, pipeline: int, chunks: int, strategy: Strategy
) -> tuple[Stage, ...]:
    """Cut the layers anywhere, into at least one a chunk."""
    number = pipeline * chunks
    cuts = sorted(draw.sample(range(1, layers), number - 1))
    runs = [(first, end - 1) for first, end in pairwise([0, *cuts, layers])]
    policy = draw.choice(("none", "op", "full"))
    held = [[runs[one] for _, one in hosted] for hosted in schedule(name, chunks).hosted(pipeline)]
    return tuple(
        Stage(
            group="chips",
            first_layer=own[0][0],
            last_layer=own[0][1],
            later_chunks=tuple(own[1:]),
            strategy=strategy,
            recompute="none" if policy == "full" else policy,
            num_recomputed=(policy == "full") * sum(last - first + 1 for first, last in own),
        )
        for own in held
    )


def layout(file: PlanFile) -> Layout:
    """Return the layout of a plan, as a configuration can say it.

    Without a pipeline there is no schedule and nothing is cut; where no weights are shared, ZeRO 1 is no different.
    """
    plan = file.plan
    (stage, *_) = plan.stages
    cut = plan.num_stages > 1
    return Layout(
        tp=stage.strategy.degree("tp"),
        pp=plan.num_stages,
        vpp=plan.virtual_stages,
        dp=plan.num_replicas,
        cp=stage.strategy.degree("cp"),
        zero=plan.zero_stage,
        sp=stage.strategy.sequence_parallel,
        mbs=plan.micro_batch,
        gbs=plan.global_batch,
        seq=file.job.sequence,
        recompute="full" if stage.num_recomputed else stage.recompute,
        schedule=plan.schedule if cut else None,
        framework="torchtitan",
        chunk_layers=tuple(stage.chunk_sizes for stage in plan.stages) if cut else (),
    )
