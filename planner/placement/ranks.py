"""Ranks: which of them are what part of the plan, where they run, and in which order they are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product

from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.plan import Plan
from planner.placement.blocks import Devices, Where

ORDERS = ("tp-cp-dp-pp", "tp-cp-pp-dp")
"""Axes from the innermost to the outermost, the usual order first; both are Megatron's, by whose names they go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One process: its number, the device that it runs on, and its part in the plan. All are counted from 0."""

    rank: int
    node: str
    local_rank: int
    """Of the ranks of the node, in their order."""
    device_index: int
    """Of the devices of the node, which are counted group by group."""
    device: str
    group: str
    pipeline: int
    """Kind of pipeline."""
    replica: int
    """Of that kind."""
    stage: int
    copy: int
    """Of the stage in its replica, where micro-batches are divided over several."""
    tp_rank: int
    cp_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The ranks of one node, in their order."""

    node: str
    ranks: tuple[Rank, ...]

    @property
    def is_run(self) -> bool:
        """Whether the ranks follow one another, as launchers count them that go from node to node."""
        return self.ranks[-1].rank - self.ranks[0].rank == len(self.ranks) - 1


def slots(ranks: Sequence[Rank]) -> tuple[Slots, ...]:
    """Return the nodes in use, in the order of their first ranks."""
    nodes: dict[str, list[Rank]] = {}
    for rank in ranks:
        nodes.setdefault(rank.node, []).append(rank)
    return tuple(Slots(node=node, ranks=tuple(held)) for node, held in nodes.items())


def numbered(plan: Plan, cluster: Cluster, devices: Devices) -> tuple[str, tuple[Rank, ...]]:
    """Return the order of the ranks and the ranks: the usual order, unless only the other one counts node by node.

    Unlike kinds of pipelines are counted after one another in the usual order. In the other one whole pipelines are,
    unlike ones in the order of the nodes where they begin: no framework says otherwise.
    """
    homes = {group.name: _home(group, cluster) for group in cluster.groups}
    order = next((order for order in ORDERS if _node_by_node(plan, order, devices, homes)), ORDERS[0])
    return order, tuple(_ranks(plan, order, devices, homes))


def counts_by_node(plan: Plan, cluster: Cluster, devices: Devices) -> bool:
    """Return whether ranks can be counted so that those of each node follow one another, in one order or the other."""
    homes = {group.name: _home(group, cluster) for group in cluster.groups}
    return any(_node_by_node(plan, order, devices, homes) for order in ORDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Home:
    """The nodes of a group."""

    group: DeviceGroup
    names: str
    """What the names of its nodes begin with."""
    number: int
    """Of the first group that has these nodes."""
    offset: int
    """Devices of a node that belong to groups before it."""

    def node(self, device: int) -> tuple[int, int]:
        """Return the node of a device of the group."""
        return self.number, device // self.group.devices_per_node


def _home(group: DeviceGroup, cluster: Cluster) -> _Home:
    """Return the nodes of a group, which others may share."""
    number = cluster.groups.index(group)
    before = [at for at in range(number) if group.nodes and cluster.groups[at].nodes == group.nodes]
    taken = any(other.nodes == group.name for other in cluster.groups)
    alone = f"{group.name}-alone" if taken else group.name
    return _Home(
        group=group,
        names=group.nodes or alone,
        number=min([*before, number]),
        offset=sum(cluster.groups[at].devices_per_node for at in before),
    )


def _blocks(plan: Plan, order: str, devices: Devices, homes: dict[str, _Home]) -> Iterator[tuple[Where, int]]:
    """Yield each copy of each stage in the order of its ranks."""
    for kind, stage, replica in _turns(plan, order, devices, homes):
        split = plan.pipelines[kind].stages[stage].split
        for copy in range(split):
            yield (kind, stage), replica * split + copy


def _turns(plan: Plan, order: str, devices: Devices, homes: dict[str, _Home]) -> Iterator[tuple[int, int, int]]:
    """Yield (kind, stage, replica) in the order of their ranks."""
    if order == ORDERS[0]:
        for kind, pipeline in enumerate(plan.pipelines):
            for stage, replica in product(range(pipeline.num_stages), range(pipeline.num_replicas)):
                yield kind, stage, replica
        return

    def begin(kind: int, replica: int) -> tuple[int, int]:
        """Return the node where a pipeline begins."""
        first = plan.pipelines[kind].stages[0]
        return homes[first.group].node(devices[kind, 0][replica * first.split][0])

    whole = [(kind, replica) for kind, one in enumerate(plan.pipelines) for replica in range(one.num_replicas)]
    for kind, replica in sorted(whole, key=lambda pair: begin(*pair)) if plan.other_pipelines else whole:
        for stage in range(plan.pipelines[kind].num_stages):
            yield kind, stage, replica


def _node_by_node(plan: Plan, order: str, devices: Devices, homes: dict[str, _Home]) -> bool:
    """Tell whether ranks that are counted in this order never come back to a node."""
    nodes = (
        homes[plan.pipelines[kind].stages[stage].group].node(device)
        for (kind, stage), block in _blocks(plan, order, devices, homes)
        for device in devices[kind, stage][block]
    )
    met = [node for node, _ in groupby(nodes)]
    return len(met) == len(set(met))


def _ranks(plan: Plan, order: str, devices: Devices, homes: dict[str, _Home]) -> Iterator[Rank]:
    """Yield the ranks in their order: in each block the tensor ranks are the innermost, then the context ranks."""
    pipelines = plan.pipelines
    used: dict[str, int] = {}
    rank = 0
    for (kind, index), block in _blocks(plan, order, devices, homes):
        stage = pipelines[kind].stages[index]
        home, tp = homes[stage.group], stage.strategy.degree("tp")
        size = home.group.devices_per_node
        for inner, device in enumerate(devices[kind, index][block]):
            node = f"{home.names}-{device // size}"
            local = used.get(node, 0)
            used[node] = local + 1
            yield Rank(
                rank=rank,
                node=node,
                local_rank=local,
                device_index=home.offset + device % size,
                device=home.group.device.name,
                group=stage.group,
                pipeline=kind,
                replica=block // stage.split,
                stage=index,
                copy=block % stage.split,
                tp_rank=inner % tp,
                cp_rank=inner // tp,
            )
            rank += 1
