"""A plan: the decision, and nothing that can be computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

CP_COMM_TYPES = ("p2p", "a2a")
"""How ranks of the context axis may exchange, the default first; the names are those of Megatron."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one replica of a stage is spread over its devices."""

    degrees: tuple[tuple[str, int], ...] = ()
    """(axis, degree), innermost first; an axis that is missing has degree 1."""
    sequence_parallel: bool = False
    """Whether norms and residuals are cut along the sequence by the tensor axis."""
    cp_comm_type: str = CP_COMM_TYPES[0]
    """How ranks of the context axis exchange: ``p2p`` (ring of keys and values) or ``a2a`` (all-to-all of heads)."""

    def degree(self, axis: str) -> int:
        """Return the degree of `axis`."""
        return dict(self.degrees).get(axis, 1)

    @property
    def num_devices(self) -> int:
        """Devices of one replica of the stage."""
        return prod(degree for _, degree in self.degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A run of consecutive layers on devices of one group."""

    group: str
    first_layer: int
    """Counted from 0, embedding and head apart."""
    last_layer: int
    """Inclusive."""
    strategy: Strategy
    recompute: str = "none"
    """Policy of the layers that are not fully recomputed: ``none`` or ``selective``."""
    num_recomputed: int = 0
    """Layers of the stage that are fully recomputed."""

    @property
    def num_layers(self) -> int:
        """Layers of the stage."""
        return self.last_layer - self.first_layer + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which layers run where, cut how, in which order."""

    stages: tuple[Stage, ...]
    schedule: str
    num_replicas: int
    """Copies of the pipeline (degree of data parallelism)."""
    micro_batch: int
    """[samples]"""
    num_microbatches: int
    """Micro-batches that one replica works on in one step."""
    zero_stage: int
    """Of the exchange across replicas: 0 replicated, 1 optimizer, 2 and gradients, 3 and weights sharded."""

    @property
    def num_stages(self) -> int:
        """Stages of the pipeline (pp)."""
        return len(self.stages)

    @property
    def global_batch(self) -> int:
        """[samples] of one step."""
        return self.micro_batch * self.num_microbatches * self.num_replicas

    @property
    def num_devices(self) -> int:
        """Devices in use."""
        return self.num_replicas * sum(stage.strategy.num_devices for stage in self.stages)

    @property
    def is_uniform(self) -> bool:
        """Whether every stage has the same number of layers, strategy and recompute."""
        shapes = {(s.num_layers, s.strategy, s.recompute, s.num_recomputed) for s in self.stages}
        return len(shapes) == 1
