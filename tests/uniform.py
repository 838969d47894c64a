"""Random plans of equal replicas without a pipeline, as frameworks of sharded data parallelism have them, by seed."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import replace

import builders
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan, Stage, Strategy
from planner.specs.plan import PlanFile

LAYERS = 4
HEADS = 16


def cluster(nodes: int, per_node: int) -> Cluster:
    """Return nodes of devices that have every usual precision."""
    group = builders.group(nodes=nodes, per_node=per_node)
    peaks = tuple((name, builders.PEAK) for name in ("bf16", "fp16", "fp32", "fp8"))
    return builders.cluster(replace(group, device=replace(group.device, peak_flops=peaks)))


def plan_file(plan: Plan, per_node: int, precision: str = "bf16") -> PlanFile:
    """Return a plan on as many devices as it needs."""
    return PlanFile(
        plan=plan,
        cluster=cluster(plan.num_devices // per_node, per_node),
        model=builders.model(LAYERS, heads=HEADS),
        job=builders.job(plan.global_batch, precision=precision),
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


def plan(
    *,
    tp: int = 1,
    cp: int = 1,
    dp: int = 1,
    zero: int = 0,
    micro_batch: int = 1,
    num_microbatches: int = 1,
    recompute: bool = False,
    comm: str = "p2p",
    sequence_parallel: bool = False,
) -> Plan:
    """Return a plan of one stage."""
    degrees = tuple((axis, degree) for axis, degree in (("tp", tp), ("cp", cp)) if degree > 1)
    stage = Stage(
        group="chips",
        first_layer=0,
        last_layer=LAYERS - 1,
        strategy=Strategy(degrees=degrees, cp_comm_type=comm, sequence_parallel=sequence_parallel),
        num_recomputed=LAYERS if recompute else 0,
    )
    return Plan(
        stages=(stage,),
        schedule="1f1b",
        num_replicas=dp,
        micro_batch=micro_batch,
        num_microbatches=num_microbatches,
        zero_stage=zero,
    )


def drawn(seed: int, comm: str, *, tensor: bool) -> PlanFile:
    """Return the random plan of a seed, with context ranks that exchange by `comm`, and tensor ranks if asked for."""
    draw = random.Random(seed)
    found = plan(
        tp=draw.choice((1, 1, 2, 4)) if tensor else 1,
        cp=draw.choice((1, 1, 2, 4)),
        dp=draw.choice((1, 2, 3, 4, 8)),
        zero=draw.choice((0, 1, 2, 3)),
        micro_batch=draw.choice((1, 2, 3)),
        num_microbatches=draw.choice((1, 4, 7)),
        recompute=draw.random() < 0.5,
        comm=comm,
    )
    per_node = draw.choice([size for size in (1, 2, 4, 8) if found.num_devices % size == 0])
    return plan_file(found, per_node, draw.choice(("bf16", "fp16", "fp32")))
