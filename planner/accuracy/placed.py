"""What a run on unlike devices costs: the replay of its plan, each stage on the slowest of its devices."""

from __future__ import annotations

from dataclasses import replace

from planner.accuracy.setting import Setting
from planner.costs.plan import plan_cost
from planner.costs.priced import PlanCost
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan, Stage
from planner.domain.prediction import Prediction
from planner.simulate.predict import predict


def placed_prediction(setting: Setting) -> Prediction:
    """Return time and memory of a setting whose stages have places.

    A stage is priced on each kind of device that it lies on, and runs as slowly as on the slowest.
    """
    layout = setting.layout
    cluster = Cluster(name="", groups=setting.groups)
    variants = [_plan(setting, variant) for variant in range(max(len(place.groups) for place in setting.places))]
    costs = [plan_cost(plan, cluster, layout.model, layout.job, layout.framework) for plan in variants]
    slowest = [
        max(range(len(variants)), key=lambda variant: _busy(costs[variant], stage, layout.num_microbatches))
        for stage in range(len(setting.places))
    ]
    plan = replace(variants[0], stages=tuple(variants[variant].stages[stage] for stage, variant in enumerate(slowest)))
    cost = plan_cost(plan, cluster, layout.model, layout.job, layout.framework)
    return predict(plan, cost, cluster, layout.model, layout.job)


def _busy(cost: PlanCost, stage: int, num_microbatches: int) -> float:
    """Return the seconds of a step that a stage works."""
    priced = cost.stages[stage]
    busy: float = num_microbatches * (priced.forward + priced.backward) + priced.sync
    return busy


def _plan(setting: Setting, variant: int) -> Plan:
    """Return the plan with each stage on its group number `variant`, or on its last one."""
    layout, full = setting.layout, setting.kind.policy == "full"
    stages, first = [], 0
    for place in setting.places:
        stages.append(
            Stage(
                group=place.groups[min(variant, len(place.groups) - 1)].name,
                first_layer=first,
                last_layer=first + place.num_layers - 1,
                strategy=layout.strategy,
                recompute="none" if full else setting.kind.policy,
                num_recomputed=place.num_layers if full else 0,
            )
        )
        first += place.num_layers
    return Plan(
        stages=tuple(stages),
        schedule="1f1b",
        num_replicas=layout.num_replicas,
        micro_batch=layout.micro_batch,
        num_microbatches=layout.num_microbatches,
        zero_stage=setting.kind.zero_stage,
    )
