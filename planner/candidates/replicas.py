"""Replicas and stages with unlike shares of the batch: where they may be, and in which numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from planner.candidates.choices import Choice, allows, divisors
from planner.costs.compute import half_peak
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import ALIKE, EQUAL, Job

SMALLEST = 2
"""[samples] of a copy, up to which micro-batches are split."""


def may_be(words: tuple[str, ...], job: Job, target: Framework | None) -> bool:
    """Tell whether the job, and the target if there is one, admit replicas of which `words` hold."""
    able = target is None or target.can.uneven_replicas or words == EQUAL
    return able and _admitted(words, job)


def may_split(job: Job, target: Framework | None) -> bool:
    """Tell whether the job, and the target if there is one, admit stages that divide micro-batches unlike ways."""
    return (target is None or target.can.uneven_data_parallel) and _admitted(ALIKE, job)


def _admitted(words: tuple[str, ...], job: Job) -> bool:
    return all(constraint.admits_replicas(words) for constraint in job.constraints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How the global batch is shared out to equal replicas."""

    num_replicas: int
    micro_batch: int
    """[samples]"""
    num_microbatches: int
    """Of a replica."""
    short_replicas: int
    """Replicas that work on a micro-batch less."""


def find_shares(choices: Sequence[Choice], job: Job, target: Framework | None, num_devices: int) -> Iterator[Shares]:
    """Yield every way to share out the batch that the job's constraints and the target admit.

    A micro-batch m divides the global batch B, and the replicas D do; or, where some replicas may work on a micro-batch
    less, D divides the devices of a group. M = ceil(B / m / D), and M D - B / m replicas are short. All have work.
    """
    unequal, batch = may_be(ALIKE, job, target), job.global_batch
    sizes = {choice.group.num_devices for choice in choices} if unequal else set()
    owned = {number for size in sizes for number in divisors(size)}
    most = min(batch, num_devices // min(choice.width for choice in choices))
    counts = [count for count in sorted({*divisors(batch), *owned}) if count <= most]
    for replicas, samples in product(counts, divisors(batch)):
        total = batch // samples
        each = -(-total // replicas)
        short = each * replicas - total
        if total < replicas or (short and not unequal):
            continue
        if allows(job.constraints, "dp", replicas) and allows(job.constraints, "micro_batch", samples):
            yield Shares(num_replicas=replicas, micro_batch=samples, num_microbatches=each, short_replicas=short)


def split_patterns(choices: Sequence[Choice], micro_batch: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of choices (indices) in which stages are split: none, those on slower groups, or on faster ones.

    Slower and faster groups part where neighbouring speeds differ most. Where all stages were split, more replicas
    would do the same. A copy works on `SMALLEST` samples or fewer, for more can be had with fewer devices.
    """
    yield tuple(index for index, choice in enumerate(choices) if choice.split == 1)
    speeds = [_speed(choice.group) for choice in choices]
    order = sorted(set(speeds))
    if len(order) < 2:
        return
    cut = max(range(1, len(order)), key=lambda at: order[at] / order[at - 1])
    for split, end in product(sorted({choice.split for choice in choices} - {1}), (order[:cut], order[cut:])):
        if micro_batch % split == 0 and micro_batch // split <= SMALLEST:
            wanted = [split if speed in end else 1 for speed in speeds]
            yield tuple(index for index, choice in enumerate(choices) if choice.split == wanted[index])


def _speed(group: DeviceGroup) -> float:
    """Return about how fast the group's devices multiply [FLOP/s]."""
    return float(half_peak(group.device) * group.device.matmul_efficiency)
