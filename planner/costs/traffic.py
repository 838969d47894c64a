"""The bytes that a plan sends between its stages and between its replicas: by these its blocks are placed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from planner.costs.exchange import Exchange, replica_exchange
from planner.costs.gathering import gathering_of
from planner.costs.hop import StageEnd, boundary_bytes
from planner.costs.stage import LayerCosts, layer_costs
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.schedules import schedule_of
from planner.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTraffic:
    """What one pipeline sends between two of its stages, there and back."""

    first: int
    second: int
    per_microbatch: Bytes
    per_step: Bytes = 0.0
    """Beside the micro-batches: gradients of tied weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What the pipelines of one kind send in one step; tensor and context ranks, which lie together, left out."""

    joints: tuple[JointTraffic, ...]
    rings: tuple[Bytes, ...]
    """Of each stage: what a rank sends to the next one that holds the same weights."""


def plan_traffic(plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> tuple[Traffic, ...]:
    """Return the traffic of every kind of pipeline, in the order of `Plan.pipelines`.

    What unlike kinds exchange with one another is left out.
    """
    return tuple(_traffic(kind, cluster, model, job, framework) for kind in plan.pipelines)


def _traffic(plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> Traffic:
    """Return the traffic of the pipelines of one kind."""
    pipelined = plan.num_stages > 1
    priced = [
        layer_costs(
            model,
            job,
            framework,
            cluster.group(stage.group),
            stage.strategy,
            plan.micro_batch // stage.split,
            pipelined=pipelined,
        )
        for stage in plan.stages
    ]
    exchanges = [
        replica_exchange(
            costs.group,
            stage.strategy,
            framework,
            job,
            num_replicas=plan.num_replicas * stage.split * schedule_of(plan).directions,
            zero_stage=plan.zero_stage,
            pipelined=pipelined,
        )
        for costs, stage in zip(priced, plan.stages, strict=True)
    ]
    rings = tuple(_ring(plan, index, priced[index], exchanges[index]) for index in range(plan.num_stages))
    ends = schedule_of(plan).hosted(plan.num_stages)[-1]
    tied = exchanges[-1].per.sent_gradients * priced[-1].head.tied_parameters * plan.stages[-1].num_devices
    alone = (0, plan.num_stages * plan.virtual_stages - 1) in ends
    tied *= schedule_of(plan).updates(plan.num_microbatches) * alone
    return Traffic(joints=_joints(plan, cluster, model, job, framework, float(tied)), rings=rings)


def _ring(plan: Plan, index: int, costs: LayerCosts, exchange: Exchange) -> Bytes:
    """Return the bytes that a rank of a stage sends to the next one with the same weights, in one step."""
    listed, shape = schedule_of(plan), (index, plan.num_stages, plan.num_microbatches)
    hosted, last = listed.hosted(plan.num_stages)[index], plan.num_stages * plan.virtual_stages - 1
    facing = plan.stages[plan.num_stages - 1 - index]
    layers = plan.stages[index].num_layers + facing.num_layers * (listed.directions - 1)
    edges = costs.edge_parameters(first=any(one == 0 for _, one in hosted), last=any(one == last for _, one in hosted))
    parameters = layers * costs.body.parameters + edges
    once = exchange.sent(exchange.step_transfers(parameters))
    if listed.predictions(*shape) and not listed.shares_weights(*shape):
        once += exchange.sent(exchange.gather_transfers(parameters))
    each = sum((exchange.sent(transfers) for transfers in exchange.pass_transfers(parameters)), start=0.0)
    sharers = gathering_of(listed, plan.num_microbatches).sharers
    return float(listed.updates(plan.num_microbatches) * once + plan.num_microbatches / sharers * each)


def _joints(
    plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework, tied: Bytes
) -> tuple[JointTraffic, ...]:
    """Return the traffic of neighbouring stages; in loops the last is the first one's neighbour, too."""
    if plan.num_stages == 1:
        return ()
    size = handed_bytes(plan, cluster, model, job, framework)
    last, listed = plan.num_stages - 1, schedule_of(plan)
    way = [listed.rank(number, 0, plan.num_stages) for number in range(plan.num_stages * plan.virtual_stages)]
    rounds = Counter((min(pair), max(pair)) for pair in pairwise(way))
    if plan.num_stages == 2:  # what goes round passes the only joint there is
        return tuple(
            JointTraffic(first=0, second=1, per_microbatch=number * sum(size), per_step=sent)
            for number, sent in ((plan.virtual_stages, 0.0), (rounds[0, 1] - plan.virtual_stages, tied))
        )
    between = tuple(
        JointTraffic(first=here, second=there, per_microbatch=rounds[here, there] * (size[here] + size[there]))
        for here, there in pairwise(range(plan.num_stages))
    )
    around = JointTraffic(first=0, second=last, per_microbatch=rounds[0, last] * (size[last] + size[0]), per_step=tied)
    return (*between, around)


def handed_bytes(plan: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> tuple[Bytes, ...]:
    """Return the bytes of one micro-batch that each stage hands over, either way, all its copies together."""

    def handed(stage: Stage) -> Bytes:
        end = StageEnd(
            group=cluster.group(stage.group),
            strategy=stage.strategy,
            num_replicas=plan.num_replicas * stage.split,
            split=stage.split,
        )
        return stage.split * float(boundary_bytes(end, model, job, framework, plan.micro_batch // stage.split))

    return tuple(handed(stage) for stage in plan.stages)
