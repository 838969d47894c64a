"""Random plans that Megatron-LM can run: 1 to 1,024 devices from V100 to GB200, alike or of two kinds, by seed."""

# ruff: noqa: S311 (plans are drawn, not secrets)

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

import builders
from planner.checks import Context, refusals, run_checks
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.precision import PRECISIONS
from planner.errors import CannotExpress
from planner.export.frameworks.megatron import MEGATRON
from planner.specs import catalog
from planner.specs.model import model_from_record
from planner.specs.plan import PlanFile

DEVICES = {
    "v100-sxm-32gb": (7, 0),
    "a100-sxm-80gb": (8, 0),
    "l40s-48gb": (8, 9),
    "h100-sxm-80gb": (9, 0),
    "h200-sxm-141gb": (9, 0),
    "b200-sxm-180gb": (10, 0),
    "gb200-186gb": (10, 0),
}
"""Kinds of devices -> their compute capabilities."""
UNASKED = {"nvfp4"}
"""Precisions that Megatron looks up in Transformer Engine, which is not installed."""
MOST_DEVICES = 1024
HEADS = 16


def plans(seeds: range) -> Iterator[tuple[int, PlanFile]]:
    """Yield the legal plans among those of the seeds: no check finds anything, memory apart, and they can be said."""
    for seed in seeds:
        file = drawn(seed)
        context = Context(plan=file.plan, cluster=file.cluster, model=file.model, job=file.job)
        if run_checks(context) or refusals(file.plan, catalog.framework("megatron"), file.cluster):
            continue
        try:
            MEGATRON.parts(file)
        except CannotExpress:
            continue
        yield seed, file


def capability(file: PlanFile) -> tuple[int, int]:
    """Return that of the devices of rank 0, which is asked."""
    return DEVICES[file.cluster.group(file.plan.stages[0].group).device.name]


def drawn(seed: int) -> PlanFile:
    """Return a random plan, most of which are legal."""
    draw = random.Random(seed)
    plan = _plan(draw)
    cluster, plan = _placed(plan, draw)
    layers = sum(stage.num_layers for stage in plan.stages)
    can = [name for name in PRECISIONS if all(group.device.peak(name) for group in cluster.groups)]
    precision = draw.choice([name for name in can if name not in UNASKED])
    return PlanFile(
        plan=plan,
        cluster=cluster,
        model=_model(draw, layers, plan.stages[0].strategy.degree("tp")),
        job=replace(builders.job(plan.global_batch, precision=precision), sequence=draw.choice((512, 1024, 4096))),
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


def _plan(draw: random.Random) -> Plan:
    pp = draw.choice((1, 1, 2, 3, 4, 8, 16))
    vpp = draw.choice((1, 1, 2, 3)) if pp > 1 else 1
    tp, cp = draw.choice((1, 2, 4, 8)), draw.choice((1, 1, 2, 4))
    most = MOST_DEVICES // (pp * tp * cp)
    sizes = _sizes(draw, pp, vpp)
    strategy = Strategy(
        degrees=tuple((axis, degree) for axis, degree in (("tp", tp), ("cp", cp)) if degree > 1),
        sequence_parallel=tp > 1 and draw.random() < 0.7,
        cp_comm_type=draw.choice(("p2p", "a2a")) if cp > 1 else "p2p",
    )
    policy = draw.choice(("none", "none", "selective", "all", "some"))
    some = vpp * draw.randint(1, max(1, min(map(min, sizes)) - 1))
    return Plan(
        stages=_stages(sizes, strategy, policy, some),
        schedule="interleaved" if vpp > 1 else "1f1b",
        num_replicas=min(most, draw.choice((1, 2, 3, 4, 8, 16, 64))),
        micro_batch=draw.choice((1, 2, 3, 4)),
        num_microbatches=pp * draw.randint(1, 4) if vpp > 1 else draw.randint(1, 4 * pp),
        zero_stage=draw.choice((0, 1) if pp > 1 else (0, 1, 2, 3)),
        virtual_stages=vpp,
    )


def _sizes(draw: random.Random, pp: int, vpp: int) -> list[tuple[int, ...]]:
    """Return the layers of each chunk of each stage: all alike, unlike at the ends, or unlike everywhere."""
    kind, usual = draw.choice(("even", "ends", "any")), draw.randint(1, 4)
    sizes = [[usual] * vpp for _ in range(pp)]
    for stage in range(pp):
        if kind == "any" or (kind == "ends" and stage in {0, pp - 1}):
            sizes[stage] = [draw.randint(1, 5) for _ in range(vpp)]
    return [tuple(stage) for stage in sizes]


def _stages(sizes: list[tuple[int, ...]], strategy: Strategy, policy: str, some: int) -> tuple[Stage, ...]:
    flat = [stage[chunk] for chunk in range(len(sizes[0])) for stage in sizes]
    ends = list(accumulate(flat))
    chunks = [(end - size, end - 1) for end, size in zip(ends, flat, strict=True)]
    stages = []
    for rank, stage in enumerate(sizes):
        first, *later = chunks[rank :: len(sizes)]
        stages.append(
            Stage(
                group="g0",
                first_layer=first[0],
                last_layer=first[1],
                later_chunks=tuple(later),
                strategy=strategy,
                recompute="selective" if policy == "selective" else "none",
                num_recomputed={"all": sum(stage), "some": some}.get(policy, 0),
            )
        )
    return tuple(stages)


def _placed(plan: Plan, draw: random.Random) -> tuple[Cluster, Plan]:
    """Return a cluster with as many devices as the plan needs, and the plan on it, some on devices of two kinds."""
    cut = plan.num_stages // 2 if plan.num_stages > 1 and draw.random() < 0.3 else 0
    parts = [part for part in (range(cut), range(cut, plan.num_stages)) if part]
    names = draw.sample(sorted(DEVICES), len(parts))
    each, groups, stages = plan.num_devices // plan.num_stages, [], []
    for number, (part, name) in enumerate(zip(parts, names, strict=True)):
        groups.append(_group(f"g{number}", name, each * len(part), draw))
        stages += [replace(plan.stages[stage], group=f"g{number}") for stage in part]
    return builders.cluster(*groups), replace(plan, stages=tuple(stages))


def _group(name: str, device: str, count: int, draw: random.Random) -> DeviceGroup:
    sizes = [size for size in ((4,) if device.startswith("gb") else (4, 8)) if count % size == 0]
    per_node = draw.choice(sizes or [size for size in (3, 2, 1) if count % size == 0][:1])
    return replace(builders.group(name, nodes=count // per_node, per_node=per_node), device=catalog.device(device))


def _model(draw: random.Random, layers: int, tensor: int) -> Model:
    family = draw.choice(("llama", "gpt2", "qwen2", "qwen3", "mistral"))
    head = draw.choice((64, 128))
    record: dict[str, object] = {
        "family": family,
        "name": "small",
        "hidden_size": 1024,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS if family == "gpt2" else draw.choice((16, 8, 4, 2)),
        "head_dim": 64 if family == "gpt2" else head,
        "intermediate_size": draw.choice((2816, 4096)),
        "vocab_size": draw.choice((32000, 50257, 151936, 1000)),
        "max_position_embeddings": draw.choice((2048, 4096, 131072)),
        "tie_word_embeddings": draw.random() < 0.5,
    }
    if draw.random() < 0.5:
        rows = draw.choice((128, 512)) * tensor
        record["vocab_size_padded"] = -(-int(str(record["vocab_size"])) // rows) * rows
    if family == "mistral" and draw.random() < 0.5:
        record["sliding_window"] = 1024
    if family == "llama" and draw.random() < 0.5:
        record["rope_theta"] = 500000.0
    return model_from_record(record, "a test")
