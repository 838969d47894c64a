"""The blocks of a plan, each a copy of a stage, in the order in which they are laid onto the nodes of their group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.plan import Plan
from planner.placement.fill import Block, devices_of
from planner.placement.tree import Span

Where = tuple[int, int]
"""(kind of pipeline, stage)."""
Turns = Mapping[tuple[int, str], int]
"""(kind of pipeline, group) -> replicas of a stage that lie side by side before the next stage takes its turn."""
Devices = Mapping[Where, "list[Block]"]
"""Devices of each copy of a stage; copies of a replica follow one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Copies of a stage that lie side by side."""

    where: Where
    first: int
    last: int
    """The copy after the run."""


def on_groups(plan: Plan, cluster: Cluster, turns: Turns) -> dict[Where, list[Block]]:
    """Return the devices of every block, each group filled in the order that `turns` tell."""
    found: dict[Where, list[Block]] = {}
    for group in cluster.groups:
        found.update(on_group(plan, group, turns))
    return found


def on_group(plan: Plan, group: DeviceGroup, turns: Turns) -> dict[Where, list[Block]]:
    """Return the devices of every block on one group."""
    runs = list(_runs(plan, group.name, turns))
    pipelines = plan.pipelines
    widths = {where: pipelines[where[0]].stages[where[1]].strategy.num_devices for where in {run.where for run in runs}}
    sequence = tuple([width for run in runs for width in [widths[run.where]] * (run.last - run.first)])
    devices = iter(devices_of(sequence, group))
    found: dict[Where, list[Block]] = {where: [] for where in widths}
    for run in runs:
        found[run.where] += islice(devices, run.last - run.first)
    return found


def _runs(plan: Plan, group: str, turns: Turns) -> Iterator[Run]:
    """Yield the runs of copies on a group: kind by kind, in each so many replicas of one stage, then of the next."""
    for kind, pipeline in enumerate(plan.pipelines):
        stages = stages_on(pipeline, group)
        turn = turns.get((kind, group), pipeline.num_replicas)
        for replica in range(0, pipeline.num_replicas, turn):
            for index in stages:
                split = pipeline.stages[index].split
                yield Run(where=(kind, index), first=replica * split, last=(replica + turn) * split)


def stages_on(pipeline: Plan, group: str) -> list[int]:
    """Return the stages of a pipeline that run on a group."""
    return [index for index, stage in enumerate(pipeline.stages) if stage.group == group]


def spans(devices: Devices) -> dict[Where, Span]:
    """Return the lowest and the highest device of each block."""
    return {
        where: Span(
            low=np.array([min(block) for block in blocks], dtype=np.int64),
            high=np.array([max(block) for block in blocks], dtype=np.int64),
        )
        for where, blocks in devices.items()
    }
