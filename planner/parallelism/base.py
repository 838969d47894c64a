"""What an axis of parallelism is: what its degree divides, and which collectives it sends when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.domain.model import Model, Number, Shard, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective that every layer of a stage runs for every micro-batch."""

    op: str
    """``all_reduce``, ``all_gather``, ``reduce_scatter`` or ``ring``: what the ranks do with their data."""
    size: Number
    """[bytes] of the whole tensor."""
    count: int
    phase: str
    """``forward`` or ``backward``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A way of spreading one replica of a stage over devices."""

    name: str
    summary: str
    refine: Callable[[Shard, Number, bool], Shard]
    """(shard, degree, sequence parallel) -> the shard of one rank."""
    blocker: Callable[[Model, int, int], str]
    """(model, sequence, degree) -> why the degree is illegal, or an empty string."""
    traffic: Callable[[Work, Number, bool], tuple[Collective, ...]]
    """(work of one rank, degree, sequence parallel) -> what is sent."""
    searched: bool = True
    """Whether the search tries degrees above 1 by itself."""
    beside_products: bool = False
    """Whether its collectives stand next to a product, behind which fused kernels hide a share of them."""
