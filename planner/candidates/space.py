"""The search space: what the integer program may choose from, without the physics behind the prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from planner.candidates.choices import SPLITS, Choice, allows, find_choices
from planner.candidates.families import Family, find_families
from planner.candidates.prices import NEVER, Ticks
from planner.candidates.replicas import may_be, may_split
from planner.candidates.schedules import find_schedules
from planner.candidates.table import Table, stack_terms, to_ticks
from planner.costs.gathering import gathering_of
from planner.costs.hop import StageEnd, hop_time
from planner.costs.stage import LayerCosts, StageTerms, layer_costs, stage_terms
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import EQUAL, Constraint, Job
from planner.domain.model import Model
from planner.errors import NoFeasiblePlan, SpecError
from planner.schedules import SEARCHED_STAGES, Schedule
from planner.units import NANOSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Devices of one group as tensor groups see them: they may not straddle nodes."""

    choices: tuple[int, ...]
    """Indices of the group's choices."""
    num_nodes: int
    devices_per_node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many devices a plan may and must take of some choices."""

    choices: tuple[int, ...]
    least: int
    most: int


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
        """(choice,) devices of the stage in one pipeline."""
        return np.array([choice.width for choice in self.choices])

    @cached_property
    def splits(self) -> NDArray[np.int64]:
        """(choice,) copies of the stage in one pipeline, each inside a node."""
        return np.array([choice.split for choice in self.choices])

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The limits on devices: one for each group, and one for all together where that says more."""
        constraints = self.job.constraints
        groups = []
        for slots in self.slots:
            name, owned = self.choices[slots.choices[0]].group.name, slots.num_nodes * slots.devices_per_node
            groups.append(_limit(slots.choices, owned, constraints, f"group {name}"))
        everything = _limit(
            tuple(range(len(self.choices))), sum(limit.most for limit in groups), constraints, "devices"
        )
        says_more = everything.least > 0 or everything.most < sum(limit.most for limit in groups)
        return (*groups, everything) if says_more else tuple(groups)

    @cached_property
    def usage(self) -> NDArray[np.int64]:
        """(limit, choice) devices that a stage of one pipeline takes of each limit."""
        rows = np.zeros((len(self.limits), len(self.choices)), dtype=np.int64)
        for row, limit in enumerate(self.limits):
            rows[row, list(limit.choices)] = self.widths[list(limit.choices)]
        return rows

    @cached_property
    def capacity(self) -> NDArray[np.int64]:
        """(limit,) the most devices."""
        return np.array([limit.most for limit in self.limits])

    @cached_property
    def least(self) -> NDArray[np.int64]:
        """(limit,) the fewest devices."""
        return np.array([limit.least for limit in self.limits])

    @property
    def num_devices(self) -> int:
        """Devices that a plan may use."""
        groups = sum(limit.most for limit in self.limits[: len(self.slots)])
        return min(groups, self.limits[-1].most) if len(self.limits) > len(self.slots) else groups

    @cached_property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules that may be used, each with every number of chunks that may be tried."""
        return tuple(find_schedules(self.job, self.framework, self.target, self.model.num_layers))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """All families of equal replicas, in a fixed order."""
        asked = (self.job, self.framework, self.target)
        if not may_be(EQUAL, self.job, self.target):
            return ()
        return tuple(find_families(self.choices, *asked, self.num_devices, self.model.num_layers))

    def stage_counts(self, family: Family) -> list[int]:
        """Return the numbers of stages that the family's pipelines may have."""
        if not family.pipelined:
            return [1] if allows(self.job.constraints, "pp", 1) else []
        smallest = int(self.widths[list(family.restriction.choices)].min())
        largest = min(family.num_slices(self.model.num_layers), self.num_devices // (family.num_replicas * smallest))
        blocker = family.schedule.blocker
        if family.schedule.orders is not None:
            largest = min(largest, SEARCHED_STAGES)
        return [stages for stages in range(2, largest + 1) if not blocker(stages, family.num_microbatches)]

    def allows_stages(self, num_stages: int) -> bool:
        """Tell whether the job's constraints admit pipelines of `num_stages`."""
        return allows(self.job.constraints, "pp", num_stages)

    def costs(self, choice: int, micro_batch: int, *, pipelined: bool) -> LayerCosts:
        """Return the layer costs of a choice, priced once."""
        key = (choice, micro_batch, pipelined)
        if key not in self._costs:
            chosen = self.choices[choice]
            samples = micro_batch // chosen.split
            self._costs[key] = layer_costs(
                self.model, self.job, self.framework, chosen.group, chosen.strategy, samples, pipelined=pipelined
            )
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[int, int, bool], LayerCosts]:
        return {}

    def hops(self, family: Family) -> Ticks:
        """Return (2, choice, choice) [ns]: forward and backward transfer between a family's choices, priced once."""
        indices, replicas = family.restriction.choices, family.num_replicas
        pairs = self._hops.setdefault((replicas, family.micro_batch), {})
        asked = (self.cluster, self.model, self.job, self.framework, family.micro_batch)
        for here, there in product(indices, indices):
            if (here, there) not in pairs:
                sender, receiver = (self._end(self.choices[index], replicas) for index in (here, there))
                pairs[here, there] = hop_time(sender, receiver, *asked)
        forward = to_ticks([[pairs[here, there] for there in indices] for here in indices])
        return np.stack([forward, forward.T])

    @staticmethod
    def _end(choice: Choice, num_replicas: int) -> StageEnd:
        copies = num_replicas * choice.split
        return StageEnd(group=choice.group, strategy=choice.strategy, num_replicas=copies, split=choice.split)

    @cached_property
    def _hops(self) -> dict[tuple[int, int], dict[tuple[int, int], float]]:
        return {}

    def terms(self, family: Family, policy: str, first: bool, last: bool) -> StageTerms:
        """Return the coefficients of all choices of a family in a role, computed once for all schedules.

        Pipelines from both ends are two replicas. Where one rank of a pipeline has both ends, they meet there.
        """
        ways, meet = family.schedule.directions, family.pipelined and all(family.schedule.ends(0, 2))
        gathering = gathering_of(family.schedule, family.num_microbatches)
        setting = (family.restriction.choices, family.micro_batch, ways * family.num_replicas, family.zero_stage)
        key = (*setting, family.pipelined, family.beyond, policy, first, last, meet, gathering)
        if key not in self._terms:
            terms = [
                stage_terms(
                    self.costs(index, family.micro_batch, pipelined=family.pipelined),
                    self.job,
                    self.framework,
                    policy=policy,
                    num_replicas=ways * family.num_replicas * self.choices[index].split,
                    zero_stage=family.zero_stage,
                    first=first,
                    last=last,
                    beyond=family.beyond,
                    ends_meet=meet,
                    gathering=gathering,
                )
                for index in family.restriction.choices
            ]
            self._terms[key] = stack_terms(terms)
        return self._terms[key]

    @cached_property
    def _terms(self) -> dict[tuple[object, ...], StageTerms]:
        return {}

    def table(self, family: Family, limit: float = NEVER, stage_counts: Sequence[int] = ()) -> Table:
        """Return the prices of a family, without stages that cannot run within `limit` [ns].

        Its choices are those of its restriction. Pipelines are those of `stage_counts`, or all that there may be.
        """
        indices = list(family.restriction.choices)
        costs = [self.costs(i, family.micro_batch, pipelined=family.pipelined) for i in indices]
        bodies = [cost.body for cost in costs]
        fastest = min(float(body.forward + body.backward) for body in bodies) / NANOSECOND
        most = max(1, min(family.num_slices(self.model.num_layers), int(limit // fastest)))
        return Table(
            family,
            [self.choices[i] for i in indices],
            costs,
            self.hops(family),
            partial(self.terms, family),
            self.model,
            self.job,
            stage_counts or self.stage_counts(family) or [1],
            most,
        )


def _limit(choices: tuple[int, ...], owned: int, constraints: Iterable[Constraint], subject: str) -> Limit:
    """Return the limit that the numeric constraints on `subject` leave of `owned` devices.

    Raises:
        SpecError: a constraint excludes one number in the middle.

    """
    least, most = 0, owned
    for constraint in constraints:
        if constraint.subject != subject or not constraint.value.isdigit():
            continue
        value = int(constraint.value)
        if constraint.operator == "!=":
            message = f"{constraint.text!r} excludes a single number of devices; give a limit, such as {subject} <= N"
            raise SpecError.of("--constraint", message)
        least = max(least, value) if constraint.operator in {"=", ">="} else least
        most = min(most, value) if constraint.operator in {"=", "<="} else most
    return Limit(choices=choices, least=least, most=most)


def find_space(
    cluster: Cluster, model: Model, job: Job, framework: Framework, target: Framework | None = None
) -> Space:
    """Return the search space.

    Raises:
        NoFeasiblePlan: no choice is legal; the rejections say why.

    """
    splits = SPLITS if may_split(job, target) else (1,)
    choices, rejections = find_choices(cluster, model, job, splits=splits, target=target)
    if not choices:
        splits_asked = any(constraint.subject == "split" for constraint in job.constraints)
        hint = (
            "; splits of 1, 2, 4 and 8 are searched, above 1 on several groups, if the framework of --for can"
            * splits_asked
        )
        raise NoFeasiblePlan(f"no degree of parallelism is legal on any group{hint}", rejections)
    return Space(
        cluster=cluster,
        model=model,
        job=job,
        framework=framework,
        target=target,
        choices=choices,
        rejections=rejections,
    )
