"""Put the stages and replicas of a plan onto named nodes, so that heavy traffic stays low in the tree of links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.costs.traffic import plan_traffic
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.placement.blocks import on_group, on_groups, spans, stages_on
from planner.placement.ranks import Rank, counts_by_node, numbered
from planner.placement.weight import Scale
from planner.specs.calibration import framework_on
from planner.units import Seconds

BETTER = 1 - 1e-9
"""[-] of the weight that another order must stay below to be taken."""
Choice = dict[tuple[int, str], int]
"""(kind of pipeline, group) -> replicas side by side; all of them where it has no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where every rank of a plan runs."""

    ranks: tuple[Rank, ...]
    order: str
    """In which the ranks are counted, the innermost axis first."""
    turns: tuple[tuple[int, str, int], ...]
    """(kind of pipeline, group, replicas of a stage side by side), where these are not all."""
    weight: Seconds
    """That links are busy in one step, as `Scale.weigh` tells."""
    assumed_weight: Seconds
    """The same if all replicas of a stage lay side by side, as prices assume; `weight` is never more."""


def place(plan: Plan, cluster: Cluster, model: Model, job: Job, *, together: bool = False) -> Placement:
    """Return the placement of a plan that the check ``devices`` accepts.

    A block is a copy of a stage: its tensor and context ranks, in one node (in one part of it, if they fit) or on whole
    nodes. Blocks fill the nodes of their group in one of these orders: all replicas of a stage, then those of the next
    stage (which prices assume); or r replicas of each stage on the group, then the next r, for every r that divides
    them, r = 1 being pipeline after pipeline. The first r is tried for a kind of pipeline on the whole cluster, then on
    each group alone; what weighs least is taken (`Scale.weigh`), of equals what is assumed, and it never weighs more
    than that. What launchers can count, node by node, goes before what they cannot. With `together` only the first
    order is taken, for whoever counts ranks stage by stage.
    """
    scale = Scale(plan, cluster, plan_traffic(plan, cluster, model, job, framework_on(cluster, job.framework)))
    best: Choice = {}
    devices = on_groups(plan, cluster, best)
    measures = spans(devices)
    assumed = weight = scale.weigh(measures)
    counts = counts_by_node(plan, cluster, devices)
    for change in () if together else _changes(plan, cluster):
        turns = {**best, **change}
        changed = {group for _, group in change}
        moved = {
            where: blocks for name in changed for where, blocks in on_group(plan, cluster.group(name), turns).items()
        }
        other = {**measures, **spans(moved)}
        found = scale.weigh(other)
        if found >= weight * BETTER and (counts or found > assumed):
            continue
        counted = counts_by_node(plan, cluster, {**devices, **moved})
        if counted if found >= weight * BETTER else counted or not counts:
            best, weight, measures, devices = turns, found, other, {**devices, **moved}
            counts = counted
    order, ranks = numbered(plan, cluster, devices)
    return Placement(
        ranks=ranks,
        order=order,
        turns=tuple(sorted((*key, turn) for key, turn in best.items() if turn < plan.pipelines[key[0]].num_replicas)),
        weight=weight,
        assumed_weight=assumed,
    )


def _changes(plan: Plan, cluster: Cluster) -> Iterator[Choice]:
    """Yield what to try: other turns of a kind of pipeline, on all groups where several stages take turns, on each."""
    for kind, pipeline in enumerate(plan.pipelines):
        shared = [group.name for group in cluster.groups if len(stages_on(pipeline, group.name)) > 1]
        every = [turn for turn in range(1, pipeline.num_replicas + 1) if pipeline.num_replicas % turn == 0]
        for names in dict.fromkeys([tuple(shared), *((name,) for name in shared)]):
            yield from ({(kind, name): turn for name in names} for turn in every if names)
