"""What an axis of parallelism is: what its degree divides, and which collectives it sends when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

from planner.domain.job import Job
from planner.domain.model import Model, Number, Shard, Work
from planner.domain.plan import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective that every layer of a stage runs for every micro-batch."""

    op: str
    """``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all`` or ``ring``: what the ranks do with their
    data."""
    size: Number
    """[bytes] of the whole tensor; for ``all_to_all`` of the part that one rank holds."""
    count: int
    phase: str
    """``forward`` or ``backward``."""
    behind: str = ""
    """Part of the layer's time, such as ``attention``, that runs at the same time; empty if the ranks wait."""


def _always(job: Job) -> bool:
    del job
    return True


def _alone(strategy: Strategy) -> tuple[Strategy, ...]:
    return (strategy,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A way of spreading one replica of a stage over devices."""

    name: str
    summary: str
    part: str
    """What reports call the time of its collectives."""
    refine: Callable[[Shard, int, Strategy], Shard]
    """(shard that the axes inside leave, degree, strategy) -> the shard of one rank."""
    blocker: Callable[[Model, Shard, int, Strategy], str]
    """(model, shard that the axes inside leave, degree above 1, strategy) -> why it is illegal, or an empty string."""
    traffic: Callable[[Work, int, Strategy], tuple[Collective, ...]]
    """(work of one rank, degree above 1, strategy) -> what is sent."""
    beside_products: bool = False
    """Whether its collectives stand next to a product, behind which fused kernels hide a share of them."""
    replicates: bool = False
    """Whether its ranks hold the same weights: then they exchange gradients, and ZeRO shards over them too."""
    searched: Callable[[Job], bool] = _always
    """job -> whether the search tries degrees above 1 where no constraint names the axis."""
    variants: Callable[[Strategy], tuple[Strategy, ...]] = _alone
    """strategy with its degrees -> the strategies to be tried, where the axis leaves more to choose than its degree."""


def refined(axes: Iterable[Axis], shard: Shard, strategy: Strategy) -> Shard:
    """Return the part of `shard` that one rank of `strategy` works on."""
    for axis in axes:
        shard = axis.refine(shard, strategy.degree(axis.name), strategy)
    return shard


def blockers(axes: Iterable[Axis], model: Model, sequence: int, strategy: Strategy) -> Mapping[str, str]:
    """Return axis -> why its degree is illegal; nothing for axes that do not object. Degrees are at least 1."""
    found = {}
    shard = Shard(micro_batch=1, sequence=sequence)
    for axis in axes:
        degree = strategy.degree(axis.name)
        reason = axis.blocker(model, shard, degree, strategy) if degree > 1 else ""
        if reason:
            found[axis.name] = reason
        shard = axis.refine(shard, degree, strategy)
    return found


def weight_copies(axes: Iterable[Axis], strategy: Strategy) -> int:
    """Return how many ranks of one replica hold the same weights."""
    return prod(strategy.degree(axis.name) for axis in axes if axis.replicates)
