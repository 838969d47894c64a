"""How one replica of a stage may be spread over devices: the legal choices, and why others were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt

from planner.costs.compute import matmul_peak
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import Strategy
from planner.parallelism import AXES, Axis, blockers


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A group, a strategy and a data split: what a position of the pipeline chooses between."""

    group: DeviceGroup
    strategy: Strategy
    split: int = 1
    """Copies of the stage in one pipeline: each micro-batch is divided over them."""

    @property
    def block(self) -> int:
        """Devices of one copy, which stay inside a node."""
        return self.strategy.num_devices

    @property
    def width(self) -> int:
        """Devices of the stage in one pipeline."""
        return self.split * self.block

    def unpriced(self, micro_batch: int) -> str:
        """Return why there is no price of the choice at `micro_batch`; empty if there is one."""
        if micro_batch % self.split:
            return f"a micro-batch of {micro_batch} cannot be split {self.split} ways"
        return self.group.unmeasured(self.strategy, micro_batch // self.split)


def allows(constraints: Iterable[Constraint], subject: str, value: int | str) -> bool:
    """Tell whether every constraint on `subject` admits `value`."""
    return all(constraint.admits(value) for constraint in constraints if constraint.subject == subject)


def divisors(number: int) -> list[int]:
    """Return the divisors of `number`, ascending."""
    small = [candidate for candidate in range(1, isqrt(number) + 1) if number % candidate == 0]
    return sorted({*small, *(number // candidate for candidate in small)})


SPLITS = (1, 2, 4, 8)
"""Copies of a stage that are tried where stages of unlike groups may divide micro-batches unlike ways."""


def find_choices(
    cluster: Cluster, model: Model, job: Job, *, splits: tuple[int, ...] = (1,), target: Framework | None = None
) -> tuple[tuple[Choice, ...], Mapping[str, int]]:
    """Return the legal choices in order of group, degree and split, and how many were refused for which reason.

    Splits are tried where there are several groups: in one group, more replicas do the same. Norms and residuals are
    cut by the tensor axis unless the `target` keeps them whole.
    """
    rejections: Counter[str] = Counter()
    found: list[Choice] = []
    micro_batches = divisors(job.global_batch)
    tried = [split for split in splits if allows(job.constraints, "split", split)] if len(cluster.groups) > 1 else [1]
    for group in cluster.groups:
        if any(c.subject == f"group {group.name}" and c.value == "unused" for c in job.constraints):
            rejections[f"group {group.name} is excluded by a constraint"] += 1
            continue
        if matmul_peak(group.device, job.precision) == 0.0:
            rejections[f"{group.device.name} has no {job.precision}"] += 1
            continue
        for degrees in product(*(_degrees(axis, group, job) for axis in AXES)):
            for usual in _strategies(degrees):
                whole = target is not None and not target.can.sequence_parallel
                strategy = replace(usual, sequence_parallel=False) if whole else usual
                choice = Choice(group=group, strategy=strategy)
                reason = _refusal(choice, model, job)
                if reason:
                    rejections[reason] += 1
                    continue
                unmeasured = [group.unmeasured(strategy, samples) for samples in micro_batches]
                rejections.update(filter(None, unmeasured))
                if not all(unmeasured):
                    found.extend(
                        replace(choice, split=split) for split in tried if choice.block * split <= group.num_devices
                    )
    return tuple(found), dict(rejections)


def _degrees(axis: Axis, group: DeviceGroup, job: Job) -> range:
    """Return the degrees to be judged: 1 alone where neither the axis nor a constraint asks for more."""
    asked = axis.searched(job) or any(constraint.subject == axis.name for constraint in job.constraints)
    return range(1, group.devices_per_node + 1 if asked else 2)


def _strategies(degrees: tuple[int, ...]) -> Iterator[Strategy]:
    """Yield the strategies with these degrees: each axis has its say in what they leave open."""
    named = tuple((axis.name, degree) for axis, degree in zip(AXES, degrees, strict=True) if degree > 1)
    strategies: tuple[Strategy, ...] = (Strategy(degrees=named),)
    for axis in AXES:
        strategies = tuple(variant for strategy in strategies for variant in axis.variants(strategy))
    yield from strategies


def _refusal(choice: Choice, model: Model, job: Job) -> str:
    if choice.width > choice.group.devices_per_node:
        return f"more than the {choice.group.devices_per_node} devices of a node of {choice.group.name}"
    strategy = choice.strategy
    blocked = blockers(AXES, model, job.sequence, strategy)
    for axis in AXES:
        if reason := _against(job, axis.name, strategy.degree(axis.name)) or blocked.get(axis.name, ""):
            return reason
    return _against(job, "cp_comm_type", strategy.cp_comm_type) if strategy.degree("cp") > 1 else ""


def _against(job: Job, subject: str, value: int | str) -> str:
    """Return which constraint does not admit `value`, or an empty string."""
    against = [c.text for c in job.constraints if c.subject == subject and not c.admits(value)]
    return f"{subject}={value} against the constraint {against[0]!r}" if against else ""
