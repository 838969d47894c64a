"""When a plan does not fit: the cheapest changes of it that do, each with its cost in step time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from planner.checks import refusals
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Prediction
from planner.errors import Repair
from planner.parallelism import AXES
from planner.pipeline.change import Change, larger_devices, repaired
from planner.report.problems import spans
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework
from planner.specs.catalog import optimizer

MOST = 5
"""Repairs that are told."""
LEANER_OPTIMIZERS = ("adam-bf16-states", "adam-8bit")
"""Recipes that need less memory than the usual Adam and train much alike, the mildest first."""
MORE_NODES = ((2, "twice"), (4, "four times"), (8, "eight times"))


def find_repairs(plan: Plan, cluster: Cluster, model: Model, job: Job, prediction: Prediction) -> tuple[Repair, ...]:
    """Return changes with which `plan` fits, the fastest per token first, those that need other devices last.

    Of each kind the mildest that suffices is taken. What the job's framework can run it can run after the change.
    Nothing is returned for a plan that fits, nor for pipelines of several kinds.
    """
    if prediction.fits or plan.other_pipelines:
        return ()
    framework = find_framework(job.target or job.framework)
    runs_on = None if refusals(plan, framework, cluster) else framework
    before = 1 / prediction.tokens_per_second
    found: list[tuple[bool, float, Repair]] = []
    for kind in _kinds(plan, cluster, model, job):
        for change in kind:
            repair = repaired(change, model, runs_on=runs_on, time_per_token=before)
            if repair is not None:
                found.append((change.buys, repair.step_time / change.job.tokens_per_step, repair))
                break
    return tuple(repair for _, _, repair in sorted(found, key=lambda entry: entry[:2])[:MOST])


def _kinds(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Iterator[Iterator[Change]]:
    """Yield the kinds of changes, each from the mildest on."""

    def changes(named: Iterator[tuple[str, Plan]]) -> Iterator[Change]:
        return (Change(text=text, plan=changed, cluster=cluster, job=job) for text, changed in named)

    yield changes(_more_recompute(plan, cluster, model, job))
    yield changes(_selective(plan))
    yield changes(_smaller_micro_batch(plan))
    yield changes(_higher_zero(plan, job))
    yield changes(_wider(plan, lambda one: _axis_doubled(one, "tp")))
    yield changes(_wider(plan, lambda one: _axis_doubled(one, "cp")))
    yield changes(_wider(plan, _stages_halved))
    yield _leaner_optimizer(plan, cluster, job)
    yield _more_nodes(plan, cluster, job)
    yield (
        Change(text=text, plan=plan, cluster=swapped, job=job, buys=True)
        for text, swapped in larger_devices(cluster, job)
    )


def _more_recompute(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with the fewest recomputed layers that suffice in each stage, as many in every stage, and all."""
    framework = framework_on(cluster, job.framework)
    limits = [cluster.group(stage.group).device.memory * (1 - job.headroom) for stage in plan.stages]
    stages = list(plan.stages)
    growing = True
    while growing:
        growing = False
        costs = plan_cost(replace(plan, stages=tuple(stages)), cluster, model, job, framework).stages
        for index, (cost, limit) in enumerate(zip(costs, limits, strict=True)):
            stage = stages[index]
            if sum(size for _, size in cost.memory) > limit and stage.num_recomputed < stage.num_layers:
                stages[index] = replace(stage, num_recomputed=stage.num_recomputed + 1)
                growing = True
    changed = [index for index, stage in enumerate(stages) if stage != plan.stages[index]]
    if changed:
        least, most = (pick(stages[index].num_recomputed for index in changed) for pick in (min, max))
        layers = f"{least}" if least == most else f"{least} to {most}"
        where = f"stage{'s' * (len(changed) > 1)} {spans(changed)}"
        yield f"recompute {layers} layer{'s' * (most > 1)} of {where} in full", replace(plan, stages=tuple(stages))
        yield f"recompute {most} layer{'s' * (most > 1)} of every stage in full", _with_recompute(plan, most)
    yield "recompute all layers in full", _with_recompute(plan, model.num_layers)


def _with_recompute(plan: Plan, layers: int) -> Plan:
    """Return the plan with `layers` recomputed in every stage, or all that it has."""
    stages = (replace(stage, num_recomputed=min(layers, stage.num_layers)) for stage in plan.stages)
    return replace(plan, stages=tuple(stages))


def _selective(plan: Plan) -> Iterator[tuple[str, Plan]]:
    stages = tuple(replace(stage, recompute="selective") for stage in plan.stages)
    if stages != plan.stages:
        yield "selective recompute", replace(plan, stages=stages)


def _smaller_micro_batch(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with each smaller micro-batch of the same step, the largest first."""
    for samples in range(plan.micro_batch - 1, 0, -1):
        if plan.micro_batch % samples == 0:
            more = plan.num_microbatches * (plan.micro_batch // samples)
            yield f"micro-batch {samples}", replace(plan, micro_batch=samples, num_microbatches=more)


def _higher_zero(plan: Plan, job: Job) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with each higher ZeRO stage that the framework has."""
    can = find_framework(job.target or job.framework).can
    for stage in sorted(can.zero_stages_pipeline if plan.num_stages > 1 else can.zero_stages):
        if stage > plan.zero_stage:
            yield f"ZeRO {stage}", replace(plan, zero_stage=stage)


def _replicas(plan: Plan, *, halved: bool) -> Iterator[Plan]:
    """Yield the plan with half or twice the replicas and the same step, where that is whole."""
    if halved and plan.num_replicas % 2 == 0:
        yield replace(plan, num_replicas=plan.num_replicas // 2, num_microbatches=plan.num_microbatches * 2)
    if not halved and plan.num_microbatches % 2 == 0:
        yield replace(plan, num_replicas=plan.num_replicas * 2, num_microbatches=plan.num_microbatches // 2)


def _wider(plan: Plan, widened: Callable[[Plan], Iterator[tuple[str, Plan]]]) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with one degree twice, four times, ... as wide and as many fewer replicas of the same step."""
    for text, wide in widened(plan):
        for fewer in _replicas(wide, halved=True):
            yield f"{text}, dp {fewer.num_replicas}", fewer
            yield from _wider(fewer, widened)


def _leaner_optimizer(plan: Plan, cluster: Cluster, job: Job) -> Iterator[Change]:
    """Yield the plan with a leaner Adam, which needs no other layout, where the job has the usual one."""
    for name in LEANER_OPTIMIZERS if job.optimizer is None else ():
        leaner = replace(job, optimizer=optimizer(name))
        yield Change(text=f"optimizer {name}", plan=plan, cluster=cluster, job=leaner)


def _axis_doubled(plan: Plan, axis: str) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with `axis` twice as wide in every stage."""
    stages = tuple(replace(stage, strategy=_doubled(stage.strategy, axis)) for stage in plan.stages)
    widths = dict.fromkeys(stage.strategy.degree(axis) for stage in stages)
    yield f"{axis} {'/'.join(map(str, widths))}", replace(plan, stages=stages)


def _doubled(strategy: Strategy, axis: str) -> Strategy:
    wide = {one.name: strategy.degree(one.name) * (1 + (one.name == axis)) for one in AXES}
    return replace(
        strategy,
        degrees=tuple((name, degree) for name, degree in wide.items() if degree > 1),
        sequence_parallel=strategy.sequence_parallel or (axis == "tp" and strategy.degree("tp") == 1),
    )


def _stages_halved(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with each stage cut into two on as many devices each, where every stage has two layers."""
    if all(stage.num_layers > 1 for stage in plan.stages):
        stages = tuple(half for stage in plan.stages for half in _halves(stage))
        yield f"pp {len(stages)}", replace(plan, stages=stages)


def _halves(stage: Stage) -> tuple[Stage, Stage]:
    """Return a stage as two, of which the second has no more layers, nor more recomputed ones."""
    layers, recomputed = (stage.num_layers + 1) // 2, (stage.num_recomputed + 1) // 2
    middle = stage.first_layer + layers
    return (
        replace(stage, last_layer=middle - 1, num_recomputed=recomputed),
        replace(stage, first_layer=middle, num_recomputed=stage.num_recomputed - recomputed),
    )


def _more_nodes(plan: Plan, cluster: Cluster, job: Job) -> Iterator[Change]:
    """Yield the plan on twice the nodes and more, with more replicas, stages or tensor ranks."""
    chains = [_repeated(plan, way) for way in (_more_replicas, _stages_halved, lambda one: _axis_doubled(one, "tp"))]
    for number, (times, word) in enumerate(MORE_NODES):
        groups = tuple(replace(group, num_nodes=times * group.num_nodes) for group in cluster.groups)
        grown = replace(cluster, groups=groups)
        for text, changed in (chain[number] for chain in chains if number < len(chain)):
            title = f"{word} the nodes ({grown.num_devices:,} devices), {text}"
            yield Change(text=title, plan=changed, cluster=grown, job=job, buys=True)


def _repeated(plan: Plan, way: Callable[[Plan], Iterator[tuple[str, Plan]]]) -> list[tuple[str, Plan]]:
    """Return the plan changed in a way that doubles its devices, changed so again, and so on for each of MORE_NODES."""
    found: list[tuple[str, Plan]] = []
    for _ in MORE_NODES:
        step = next(way(found[-1][1] if found else plan), None)
        if step is None:
            break
        found.append(step)
    return found


def _more_replicas(plan: Plan) -> Iterator[tuple[str, Plan]]:
    return ((f"dp {wide.num_replicas}", wide) for wide in _replicas(plan, halved=False))
