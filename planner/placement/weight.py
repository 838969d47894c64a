"""How much traffic a placement leads how high: the sum over joints and rings of bytes / bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from planner.costs.traffic import JointTraffic, Traffic
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan
from planner.parallelism import AXES, weight_copies
from planner.placement.blocks import Where
from planner.placement.tree import Span, Tree, bytes_between, tree
from planner.units import Seconds


class Scale:
    """Weighs placements of one plan."""

    def __init__(self, plan: Plan, cluster: Cluster, traffic: Sequence[Traffic]) -> None:
        """Keep what is asked."""
        self._plan = plan
        self._cluster = cluster
        self._traffic = traffic

    def weigh(self, spans: Mapping[Where, Span]) -> Seconds:
        """Return the seconds that links are busy in one step: the sum of bytes / bandwidth over all joints and rings.

        W = sum over joints (blocks a, b of one pipeline) of bytes(a, b) / B(a, b)
          + sum over rings (neighbours a, b) of bytes(a, b) / B(a, b)

        B(a, b) is the rate of the lowest unit of the tree that holds both: of a part of the node or the node, for each
        pair of devices that sends, else of the adapters of a node, in the tier that holds both. A ring goes round the
        blocks in the order of their devices, and so enters and leaves each node once (as NCCL's do).
        """
        total = 0.0
        for kind, (pipeline, traffic) in enumerate(zip(self._plan.pipelines, self._traffic, strict=True)):
            total += sum(self._joint((kind, pipeline), joint, spans) for joint in traffic.joints)
            total += sum(self._ring((kind, index), size, spans) for index, size in enumerate(traffic.rings))
        return total

    def _joint(self, of: tuple[int, Plan], joint: JointTraffic, spans: Mapping[Where, Span]) -> Seconds:
        """Return the seconds of the transfers between two stages of all pipelines of one kind."""
        kind, pipeline = of
        ends = pipeline.stages[joint.first], pipeline.stages[joint.second]
        replicas = np.arange(pipeline.num_replicas)
        late = replicas >= pipeline.num_replicas - pipeline.short_replicas
        size = (pipeline.num_microbatches - late) * joint.per_microbatch + joint.per_step
        between = self._tree(ends[0].group, ends[1].group)
        streams = min(end.strategy.num_devices for end in ends)
        return sum(
            between.seconds(
                spans[kind, joint.first].at(replicas * ends[0].split + here),
                spans[kind, joint.second].at(replicas * ends[1].split + there),
                share * size,
                streams,
            )
            for here, there, share in bytes_between((ends[0].split, ends[1].split), 1.0)
        )

    def _ring(self, where: Where, size: float, spans: Mapping[Where, Span]) -> Seconds:
        """Return the seconds of the exchange between the copies of a stage; each rank with other weights has a ring."""
        stage = self._plan.pipelines[where[0]].stages[where[1]]
        rings = stage.strategy.num_devices // weight_copies(AXES, stage.strategy)
        here = spans[where].at(np.argsort(spans[where].low))
        there = Span(low=np.roll(here.low, -1), high=np.roll(here.high, -1))
        return self._tree(stage.group, stage.group).seconds(here, there, rings * size, rings)

    def _tree(self, first: str, second: str) -> Tree:
        if (first, second) not in self._trees:
            self._trees[first, second] = tree(self._cluster, first, second)
        return self._trees[first, second]

    @cached_property
    def _trees(self) -> dict[tuple[str, str], Tree]:
        return {}
