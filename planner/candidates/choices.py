"""How one replica of a stage may be spread over devices: the legal choices, and why others were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from planner.costs.compute import matmul_peak
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import Strategy
from planner.parallelism import AXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A group and a strategy: what a position of the pipeline chooses between."""

    group: DeviceGroup
    strategy: Strategy

    @property
    def width(self) -> int:
        """Devices of one replica."""
        return self.strategy.num_devices


def allows(constraints: Iterable[Constraint], subject: str, value: int | str) -> bool:
    """Tell whether every constraint on `subject` admits `value`."""
    return all(constraint.admits(value) for constraint in constraints if constraint.subject == subject)


def find_choices(cluster: Cluster, model: Model, job: Job) -> tuple[tuple[Choice, ...], Mapping[str, int]]:
    """Return the legal choices in order of group and degree, and how many were refused for which reason."""
    rejections: Counter[str] = Counter()
    found = []
    for group in cluster.groups:
        if any(c.subject == f"group {group.name}" and c.value == "unused" for c in job.constraints):
            rejections[f"group {group.name} is excluded by a constraint"] += 1
            continue
        if matmul_peak(group.device, job.precision) == 0.0:
            rejections[f"{group.device.name} has no {job.precision}"] += 1
            continue
        for degrees in product(*(range(1, group.devices_per_node + 1) for _ in AXES)):
            choice = _choice(group, degrees)
            reason = _refusal(choice, model, job)
            if reason:
                rejections[reason] += 1
            else:
                found.append(choice)
    return tuple(found), dict(rejections)


def _choice(group: DeviceGroup, degrees: tuple[int, ...]) -> Choice:
    named = tuple((axis.name, degree) for axis, degree in zip(AXES, degrees, strict=True) if degree > 1)
    return Choice(group=group, strategy=Strategy(degrees=named, sequence_parallel=dict(named).get("tp", 1) > 1))


def _refusal(choice: Choice, model: Model, job: Job) -> str:
    if choice.width > choice.group.devices_per_node:
        return f"more than the {choice.group.devices_per_node} devices of a node of {choice.group.name}"
    for axis in AXES:
        degree = choice.strategy.degree(axis.name)
        constrained = [c for c in job.constraints if c.subject == axis.name]
        against = [c.text for c in constrained if not allows([c], axis.name, degree)]
        if against:
            return f"{axis.name}={degree} against the constraint {against[0]!r}"
        if degree > 1 and not axis.searched and not constrained:
            return f"{axis.name}={degree} is tried only when asked for"
        blocker = axis.blocker(model, job.sequence, degree)
        if blocker:
            return blocker
    return ""
