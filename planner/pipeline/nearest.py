"""The plan nearest to one that a framework cannot run: the fastest that keeps what it can of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from planner.checks import refusals
from planner.costs.split import equal_split
from planner.domain.framework import Framework
from planner.domain.plan import SEARCHED, Plan, Stage, Strategy
from planner.errors import SpecError
from planner.pipeline.judging import predict_plan
from planner.report.figures import seconds
from planner.report.layout import joined
from planner.report.plan import decision
from planner.schedules import schedule
from planner.specs.plan import PlanFile


def nearest_plan(file: PlanFile, framework: Framework) -> str:
    """Return in words the fastest plan with the same groups and stages that `framework` can run, and how to search.

    Tried are: every stage with the strategy of one of them, layers shared out evenly, one recompute policy for all,
    another schedule or ZeRO stage, one chunk a stage, copies of the first kind of pipeline alone; what the framework
    can run is kept.
    """
    search = f"`planner plan --for {framework.name}` searches all that it can run"
    before, _ = predict_plan(file.plan, file.cluster, file.model, file.job)
    best: tuple[float, Plan] | None = None
    for plan in dict.fromkeys(_variants(file.plan, framework, file.job.global_batch)):
        if refusals(plan, framework, file.cluster):
            continue
        try:
            prediction, problems = predict_plan(plan, file.cluster, file.model, file.job)
        except SpecError:
            continue  # the variant is not sound: its devices or degrees are not there
        if not problems and (best is None or prediction.step_time < best[0]):
            best = prediction.step_time, plan
    if best is None:
        return f"no plan with the same stages is one that {framework.name} can run; {search}"
    slower = best[0] / before.step_time - 1
    takes = joined(f"{seconds(best[0])} a step ({slower:+.1%})")
    return f"the nearest that {framework.name} can run is {decision(best[1])}: {takes}; {search}"


def _variants(plan: Plan, framework: Framework, batch: int) -> Iterator[Plan]:
    """Yield what a plan may be turned into, its own choices first."""
    can = framework.can
    kind = replace(plan, other_pipelines=(), short_replicas=0)
    zeros = (plan.zero_stage, *(can.zero_stages_pipeline if plan.num_stages > 1 else can.zero_stages))
    names = [name for name in can.schedules if name != SEARCHED]
    alike = [name for name in names if schedule(name).virtual_stages == schedule(name).directions == 1]
    kinds = [kind]
    if plan.virtual_stages > 1 and alike:
        sizes = [stage.num_layers for stage in plan.stages]
        stages = _shared_out(plan.stages, sizes)
        kinds.append(replace(kind, stages=stages, virtual_stages=1, microbatch_group=0, schedule=alike[0]))
    for one in kinds:
        schedules = (one.schedule, *alike) if one.virtual_stages == 1 else (one.schedule,)
        replicas = [number for number in range(1, one.num_replicas + 1) if batch % (number * one.micro_batch) == 0]
        for stages, zero, name, number in product(_stages(one), zeros, schedules, replicas[::-1][:4]):
            yield replace(
                one,
                stages=stages,
                zero_stage=zero,
                schedule=name,
                order=one.order if name == SEARCHED and number == one.num_replicas else (),
                num_replicas=number,
                num_microbatches=batch // (number * one.micro_batch),
            )


def _stages(plan: Plan) -> Iterator[tuple[Stage, ...]]:
    """Yield the stages of a plan, made alike in one thing after another."""
    used = dict.fromkeys(stage.strategy for stage in plan.stages)
    strategies: list[Strategy | None] = [None, *used, *(replace(one, sequence_parallel=False) for one in used)]
    recomputes = [None, *dict.fromkeys((s.recompute, s.num_recomputed == s.num_layers) for s in plan.stages)]
    recomputes += [("none", False), ("none", True)]
    for strategy, even, recompute in product(strategies, (False, True), dict.fromkeys(recomputes)):
        alike = even and plan.virtual_stages == 1
        sizes = equal_split(sum(stage.num_layers for stage in plan.stages), plan.num_stages)
        stages = _shared_out(plan.stages, sizes) if alike else plan.stages
        yield tuple(_alike(stage, strategy, recompute) for stage in stages)


def _alike(stage: Stage, strategy: Strategy | None, recompute: tuple[str, bool] | None) -> Stage:
    made = replace(stage, strategy=strategy or stage.strategy, split=1 if strategy else stage.split)
    if recompute is None:
        return made
    policy, full = recompute
    return replace(made, recompute=policy, num_recomputed=made.num_layers if full else 0)


def _shared_out(stages: tuple[Stage, ...], sizes: Sequence[int]) -> tuple[Stage, ...]:
    """Return the stages with so many layers each, in one run."""
    made, first = [], 0
    for stage, size in zip(stages, sizes, strict=True):
        recomputed, last = min(size, stage.num_recomputed), first + size - 1
        made.append(replace(stage, first_layer=first, last_layer=last, later_chunks=(), num_recomputed=recomputed))
        first += size
    return tuple(made)
