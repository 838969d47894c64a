"""A plan file as it is written: the envelope's keys and what each field alone may hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from planner.schedules.cells import CELL
from planner.specs.record import Count, Record, Text, whole

Index = Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**9)]
Figure = Annotated[float, Field(allow_inf_nan=False)]


def _passes(value: object) -> object:
    """Refuse what is no pass among those of a rank."""
    if isinstance(value, str):
        for cell in value.split(","):
            if not CELL.fullmatch(cell):
                raise ValueError(
                    f"has {cell[:20]!r}, which is no pass; write passes as 0F3 (F, B, I or W of micro-batch 3 on"
                    " virtual stage 0), with commas between"
                )
    return value


Layers = Annotated[
    list[Index], Field(min_length=2, max_length=2, description="First and last layer, from 0, inclusive.")
]


class DegreeRecord(Record):
    """How often one axis cuts."""

    axis: Text
    degree: Count


class StageRecord(Record):
    """A run of consecutive layers, or several, on devices of one group."""

    group: Text
    layers: Layers
    chunks: list[Layers] = Field([], description="Of each chunk, the first beside `layers`; where virtual_stages > 1.")
    degrees: list[DegreeRecord] = Field([], description="Innermost first; a missing axis has 1.")
    sequence_parallel: bool = False
    cp_comm_type: Literal["p2p", "a2a"] = Field("p2p", description="How context ranks exchange: ring or all-to-all.")
    recompute: str = Field("none", description="Of the layers that are not fully recomputed: none or selective.")
    num_recomputed: Index = Field(0, description="Layers of the stage that are fully recomputed.")
    split: Count = Field(1, description="Copies of the stage in one pipeline; each micro-batch is divided over them.")

    @model_validator(mode="after")
    def has_layers(self) -> StageRecord:
        """Refuse layers that run backwards, and chunks that do not begin with them."""
        for layers in (self.layers, *self.chunks):
            if layers[1] < layers[0]:
                raise ValueError(f"has layers {layers}; write [first, last], the last not below the first")
        if self.chunks and self.chunks[0] != self.layers:
            raise ValueError(f"has layers {self.layers} and {self.chunks[0]} as its first chunk; they must be the same")
        axes = [item.axis for item in self.degrees]
        if len(set(axes)) < len(axes):
            raise ValueError(f"has an axis twice in its degrees ({', '.join(axes)}); give each axis once")
        return self


Passes = Annotated[str, BeforeValidator(_passes)]


class PipelineRecord(Record):
    """Which layers run where, cut how, in which order: the replicas of one kind."""

    schedule: Text
    virtual_stages: Count = Field(1, description="Chunks of layers of each stage (vpp).")
    microbatch_group: Index = Field(
        0, description="Micro-batches that pass a chunk before any passes the next one; 0: one a stage (vpp_group)."
    )
    num_replicas: Count = Field(description="Copies of the pipeline (dp, where there are no unlike ones).")
    micro_batch: Count = Field(description="[samples]")
    num_microbatches: Count = Field(description="Micro-batches of one replica in one step.")
    short_replicas: Index = Field(0, description="Replicas, the last ones, that work on one micro-batch less.")
    order: list[Passes] = Field([], description="The passes of every rank, where the schedule is search.")
    stages: list[StageRecord] = Field(min_length=1)


class DecisionRecord(PipelineRecord):
    """The decision: the replicas of the first kind, and unlike ones beside them."""

    zero_stage: Annotated[int, Field(ge=0, le=3)]
    other_pipelines: list[PipelineRecord] = Field([], description="Unlike replicas that train beside these.")


class CertificateRecord(Record):
    """What the search proved."""

    objective_s: Figure
    lower_bound_s: Figure
    gap: Figure
    replay_lower_bound_s: Figure


class PredictionRecord(Record):
    """What was predicted when the plan was made; recomputed on load, never trusted."""

    step_time_s: Figure
    tokens_per_s: Figure
    model_flops_utilization: Figure
    bubble_fraction: Figure
    peak_memory_bytes: list[Figure] = Field(description="[bytes] of each stage.")


class DigestsRecord(Record):
    """Digests of the embedded parts, by which a change of hand is seen."""

    plan: Text
    certificate: Text
    cluster: Text
    model: Text
    job: Text


def _version(value: object) -> object:
    return str(value) if isinstance(value, float) else value


class PlanRecord(Record):
    """A plan with all that it was made of."""

    format_version: Annotated[str, BeforeValidator(_version), Field(pattern=r"^\d+\.\d+$")]
    made_by: Text = Field(description="Program and version.")
    plan: DecisionRecord
    certificate: CertificateRecord | None = None
    prediction: PredictionRecord | None = None
    cluster: dict[str, Any]
    model: dict[str, Any]
    job: dict[str, Any]
    digests: DigestsRecord | None = Field(None, description="sha256 of what the proof is about, and of the proof.")
