"""The search space: what the integer program may choose from, without the physics behind the prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.candidates.choices import Choice, allows, find_choices
from planner.candidates.families import Family, find_families
from planner.candidates.table import Table
from planner.costs.stage import LayerCosts, layer_costs
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.errors import NoFeasiblePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Devices of one group as tensor groups see them: they may not straddle nodes."""

    choices: tuple[int, ...]
    """Indices of the group's choices."""
    num_nodes: int
    devices_per_node: int


@dataclass(frozen=True)
class Space:
    """Choices, capacities and families of one planning task."""

    cluster: Cluster
    model: Model
    job: Job
    framework: Framework
    target: Framework | None
    choices: tuple[Choice, ...]
    rejections: Mapping[str, int]

    @cached_property
    def slots(self) -> tuple[Slots, ...]:
        """The groups that have choices."""
        found = []
        for group in self.cluster.groups:
            indices = tuple(i for i, choice in enumerate(self.choices) if choice.group.name == group.name)
            if indices:
                found.append(Slots(choices=indices, num_nodes=group.num_nodes, devices_per_node=group.devices_per_node))
        return tuple(found)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """(choice,) devices of one replica."""
        return np.array([choice.width for choice in self.choices])

    @cached_property
    def usage(self) -> NDArray[np.int64]:
        """(row, choice) devices that a replica takes of each limit: a row a group, and one for all if that binds."""
        rows = np.zeros((len(self.slots), len(self.choices)), dtype=np.int64)
        for row, slots in enumerate(self.slots):
            rows[row, list(slots.choices)] = self.widths[list(slots.choices)]
        return np.vstack([rows, self.widths]) if self._total < self._owned.sum() else rows

    @cached_property
    def capacity(self) -> NDArray[np.int64]:
        """(row,) devices of each limit."""
        return np.append(self._owned, self._total) if self._total < self._owned.sum() else self._owned

    @property
    def num_devices(self) -> int:
        """Devices that a plan may use."""
        return self._total

    @property
    def _owned(self) -> NDArray[np.int64]:
        return np.array([slots.num_nodes * slots.devices_per_node for slots in self.slots])

    @property
    def _total(self) -> int:
        at_most = [int(c.value) for c in self.job.constraints if c.subject == "devices"]
        return min([int(self._owned.sum()), *at_most])

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """All families, in a fixed order."""
        return tuple(find_families(self.choices, self.job, self.target, self.num_devices))

    def stage_counts(self, family: Family) -> range:
        """Return the numbers of stages that the family's pipelines may have."""
        if not family.pipelined:
            return range(1, 2) if allows(self.job.constraints, "pp", 1) else range(0)
        smallest = int(self.widths[list(family.restriction.choices)].min())
        largest = min(self.model.num_layers, self.num_devices // (family.num_replicas * smallest))
        return range(2, largest + 1)

    def allows_stages(self, num_stages: int) -> bool:
        """Tell whether the job's constraints admit pipelines of `num_stages`."""
        return allows(self.job.constraints, "pp", num_stages)

    def costs(self, choice: int, micro_batch: int) -> LayerCosts:
        """Return the layer costs of a choice, priced once."""
        key = (choice, micro_batch)
        if key not in self._costs:
            chosen = self.choices[choice]
            self._costs[key] = layer_costs(
                self.model, self.job, self.framework, chosen.group, chosen.strategy, micro_batch
            )
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[int, int], LayerCosts]:
        return {}

    def table(self, family: Family) -> Table:
        """Return the prices of a family; its choices are those of its restriction."""
        indices = family.restriction.choices
        return Table(
            family,
            [self.choices[i] for i in indices],
            [self.costs(i, family.micro_batch) for i in indices],
            self.cluster,
            self.model,
            self.job,
            self.framework,
            max(self.stage_counts(family), default=1),
        )


def find_space(
    cluster: Cluster, model: Model, job: Job, framework: Framework, target: Framework | None = None
) -> Space:
    """Return the search space.

    Raises:
        NoFeasiblePlan: no choice is legal; the rejections say why.

    """
    choices, rejections = find_choices(cluster, model, job)
    if not choices:
        raise NoFeasiblePlan("no degree of parallelism is legal on any group", rejections)
    return Space(
        cluster=cluster,
        model=model,
        job=job,
        framework=framework,
        target=target,
        choices=choices,
        rejections=rejections,
    )
