"""A plan: the decision, and nothing that can be computed from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

CP_COMM_TYPES = ("p2p", "a2a")
"""How ranks of the context axis may exchange, the default first; the names are those of Megatron."""


SEARCHED = "search"
"""Schedule of a plan whose passes have an order of their own, found for its stages; `Plan.order` has it."""


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
    """One rank of the pipeline: a run of consecutive layers on devices of one group, or several runs (chunks)."""

    group: str
    first_layer: int
    """Of the first chunk; counted from 0, embedding and head apart."""
    last_layer: int
    """Of the first chunk, inclusive."""
    strategy: Strategy
    recompute: str = "none"
    """Policy of the layers that are not fully recomputed: ``none`` or ``selective``."""
    num_recomputed: int = 0
    """Layers of the stage that are fully recomputed, spread over its chunks as its layers are."""
    later_chunks: tuple[tuple[int, int], ...] = ()
    """(first, last) layer of every chunk after the first, where the plan has virtual stages."""
    split: int = 1
    """Copies of the stage in one pipeline: each micro-batch is divided over them."""

    @property
    def num_devices(self) -> int:
        """Devices of the stage in one pipeline."""
        return self.split * self.strategy.num_devices

    @property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """(first, last) layer of every chunk, in the order of the layers."""
        return ((self.first_layer, self.last_layer), *self.later_chunks)

    @property
    def chunk_sizes(self) -> tuple[int, ...]:
        """Layers of every chunk."""
        return tuple(last - first + 1 for first, last in self.chunks)

    @property
    def num_layers(self) -> int:
        """Layers of the stage, all chunks together."""
        return sum(self.chunk_sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which layers run where, cut how, in which order: pipelines that are copies of one, or of several unlike ones."""

    stages: tuple[Stage, ...]
    schedule: str
    num_replicas: int
    """Copies of the pipeline (degree of data parallelism, where there are no others)."""
    micro_batch: int
    """[samples]"""
    num_microbatches: int
    """Micro-batches that one replica works on in one step."""
    zero_stage: int
    """Of the exchange across replicas: 0 replicated, 1 optimizer, 2 and gradients, 3 and weights sharded."""
    virtual_stages: int = 1
    """Chunks of layers of each stage (vpp): in loops chunk c of the last stage is followed by chunk c + 1 of the first,
    in Vs by its own."""
    microbatch_group: int = 0
    """Micro-batches that pass a chunk before any passes the next one, in interleaved schedules; 0: one a stage."""
    short_replicas: int = 0
    """Replicas, the last ones, that work on one micro-batch less."""
    order: tuple[str, ...] = ()
    """The passes of every rank, separated by commas (``0F0,0F1,0B0``), where the schedule is `SEARCHED`."""
    other_pipelines: tuple[Plan, ...] = ()
    """Unlike replicas that train beside these: each with its copies, stages and micro-batches, and no others."""

    @property
    def pipelines(self) -> tuple[Plan, ...]:
        """Every kind of pipeline, as a plan of its own."""
        return (replace(self, other_pipelines=()), *self.other_pipelines) if self.other_pipelines else (self,)

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The stages of every kind of pipeline, after one another."""
        return tuple(stage for pipeline in self.pipelines for stage in pipeline.stages)

    @property
    def num_stages(self) -> int:
        """Stages of the pipeline, one for each rank (pp)."""
        return len(self.stages)

    @property
    def data_parallel(self) -> int:
        """Replicas of all kinds, which exchange their gradients."""
        return sum(pipeline.num_replicas for pipeline in self.pipelines)

    @property
    def global_batch(self) -> int:
        """[samples] of one step."""
        return sum(pipeline.samples for pipeline in self.pipelines)

    @property
    def samples(self) -> int:
        """[samples] of one step that the replicas of this kind work on."""
        return self.micro_batch * (self.num_microbatches * self.num_replicas - self.short_replicas)

    @property
    def num_devices(self) -> int:
        """Devices in use."""
        return sum(devices for _, devices in self.devices)

    @property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """(group, devices) of every stage of every kind of pipeline, all its replicas together."""
        return tuple(
            (stage.group, pipeline.num_replicas * stage.num_devices)
            for pipeline in self.pipelines
            for stage in pipeline.stages
        )

    @property
    def has_even_replicas(self) -> bool:
        """Whether every replica has the same stages and micro-batches, and every stage the same degree of dp."""
        return not (self.other_pipelines or self.short_replicas or any(stage.split > 1 for stage in self.stages))

    @property
    def is_uniform(self) -> bool:
        """Whether every replica and every stage has the same numbers of layers, strategy and recompute."""
        shapes = {(s.chunk_sizes, s.strategy, s.recompute, s.num_recomputed) for s in self.stages}
        return len(shapes) == 1 and self.has_even_replicas
