"""Random plans that the checks accept, on random clusters, some of whose groups share nodes."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import replace

import builders
from planner.checks import Context, run_checks
from planner.domain.cluster import Cluster, GroupLink, Tier
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy

MOST_DEVICES = 24
MICRO_BATCH = 6
"""[samples] which all splits that are drawn divide"""


def drawn_problem(seed: int) -> tuple[builders.Planning, Plan] | None:
    """Return a random plan on a random cluster; None where no plan was found that fits onto the nodes."""
    draw = random.Random(seed)
    found = builders.drawn(seed, most_devices=MOST_DEVICES, topology=draw.random() < 0.7)
    found = replace(found, cluster=_with_tiers(_with_shared_nodes(found.cluster, draw), draw))
    for _ in range(30):
        plan = _drawn_plan(found.cluster, found.model, draw)
        context = Context(plan=plan, cluster=found.cluster, model=found.model, job=found.job)
        if not run_checks(context, names=("devices",)):
            return found, plan
    return None


def _with_shared_nodes(cluster: Cluster, draw: random.Random) -> Cluster:
    """Return the cluster, its first two groups on shared nodes half of the time."""
    if len(cluster.groups) < 2 or draw.random() < 0.5:
        return cluster
    first, second, *others = cluster.groups
    nodes = min(first.num_nodes, second.num_nodes)
    shared = [replace(group, nodes="box", num_nodes=nodes) for group in (first, second)]
    rate = draw.choice((1e9, 1e11))
    link = GroupLink(first="g0", second="g1", transport="node", bandwidth=rate, efficiency=1.0, latency=0.0)
    return replace(cluster, groups=(*shared, *others), links=(link,))


def _with_tiers(cluster: Cluster, draw: random.Random) -> Cluster:
    """Return the cluster, racks of two nodes in some of its groups."""
    groups = []
    for group in cluster.groups:
        network = group.inter_node
        if group.num_nodes > 2 and draw.random() < 0.5:
            network = replace(network, tiers=(Tier(name="rack", num_nodes=2, bandwidth=network.bandwidth / 4),))
        groups.append(replace(group, inter_node=network))
    return replace(cluster, groups=tuple(groups))


def _drawn_plan(cluster: Cluster, model: Model, draw: random.Random) -> Plan:
    """Return a random plan, which need not fit."""
    first, *others = (_drawn_kind(cluster, model, draw) for _ in range(draw.choice((1, 1, 1, 2))))
    return replace(first, other_pipelines=tuple(others))


def _drawn_kind(cluster: Cluster, model: Model, draw: random.Random) -> Plan:
    """Return random pipelines of one kind."""
    num_stages = draw.randint(1, min(4, model.num_layers))
    ends = sorted(draw.sample(range(1, model.num_layers), num_stages - 1))
    replicas = draw.randint(1, 6)
    stages = []
    for first, last in zip([0, *ends], [*ends, model.num_layers], strict=True):
        group = draw.choice(cluster.groups)
        degrees = (("tp", draw.randint(1, group.devices_per_node)), ("cp", draw.choice((1, 1, 1, 2))))
        stages.append(
            Stage(
                group=group.name,
                first_layer=first,
                last_layer=last - 1,
                strategy=Strategy(degrees=degrees),
                split=draw.choice((1, 1, 1, 2, 3)),
            )
        )
    return Plan(
        stages=tuple(stages),
        schedule="1f1b",
        num_replicas=replicas,
        micro_batch=MICRO_BATCH,
        num_microbatches=draw.randint(2, 9),
        zero_stage=draw.choice((0, 1, 3)),
        short_replicas=draw.randint(0, replicas - 1),
    )
