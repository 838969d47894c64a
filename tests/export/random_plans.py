"""Random plans as FlagScale and its like may have them: unlike tensor degrees, data splits, layers and recompute."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import replace

import builders
from placement.plans import drawn_problem
from planner.checks import Context, run_checks
from planner.domain.plan import Plan, Stage, Strategy
from planner.specs.plan import PlanFile


def plan_file(found: builders.Planning, plan: Plan, framework: str) -> PlanFile:
    """Return the file of a plan, its job with the plan's batch."""
    job = replace(found.job, global_batch=plan.global_batch, framework=framework, constraints=())
    return PlanFile(
        plan=plan,
        cluster=found.cluster,
        model=found.model,
        job=job,
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


def unlike(seed: int, framework: str = "flagscale") -> PlanFile | None:
    """Return the file of a random plan of one kind of pipelines; None where none was found that fits."""
    found = drawn_problem(seed)
    if found is None:
        return None
    draw, (problem, drawn) = random.Random(seed), found
    partial = draw.random() < 0.6
    stages = tuple(_stage(stage, draw, partial=partial) for stage in drawn.stages)
    plan = replace(
        drawn,
        stages=stages,
        zero_stage=draw.choice((0, 1)),
        short_replicas=0,
        other_pipelines=(),
    )
    context = Context(plan=plan, cluster=problem.cluster, model=problem.model, job=problem.job)
    return plan_file(problem, plan, framework) if not run_checks(context, names=("devices", "degrees")) else None


def _stage(stage: Stage, draw: random.Random, *, partial: bool) -> Stage:
    tp = stage.strategy.degree("tp")
    degrees = (("tp", tp),) if tp > 1 else ()
    recomputed = draw.randint(0, stage.num_layers) if partial else 0
    return replace(stage, strategy=Strategy(degrees=degrees, sequence_parallel=tp > 1), num_recomputed=recomputed)
