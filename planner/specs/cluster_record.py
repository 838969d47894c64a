"""A cluster as it is written: keys, units and what each field alone may hold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from planner.domain.precision import PRECISIONS
from planner.specs import catalog
from planner.specs.link_record import GroupLinkRecord, LinkField, NetworkField, NodeLinkField, TierBlock
from planner.specs.record import Amount, Count, Positive, Record, Share, Switch, Text, known


class DeviceBlock(Record):
    """A device: a row of the catalogue with changes, or figures of its own."""

    name: Text | None = None
    device: Annotated[str, AfterValidator(known(catalog.device))] | None = Field(
        None, description="Row of the catalogue, which the other keys change."
    )
    memory_gib: Positive | None = Field(None, description="[2^30 bytes] device memory as the driver reports it.")
    memory_bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] peak of the device memory.")
    bf16_tflops: Positive | None = Field(None, description="[10^12 FLOP/s] dense peak; leave out if not supported.")
    fp16_tflops: Positive | None = None
    fp32_tflops: Positive | None = None
    fp8_tflops: Positive | None = None
    fp4_tflops: Positive | None = None
    matmul_efficiency: Share | None = Field(
        None, description="[-] share of the peak that large products reach in training; default 0.6."
    )
    fp8_efficiency: Share | None = Field(None, description="[-] the same in fp8; default that of the other precisions.")
    fp4_efficiency: Share | None = Field(None, description="[-] the same in fp4; default that of the other precisions.")
    attention_efficiency: Share | None = Field(
        None, description="[-] share of the 16-bit peak of the attention kernel; default 0.4."
    )
    fused_attention: bool | None = Field(
        None, description="Whether a fused (flash) attention kernel exists; default true."
    )
    vendor: Text | None = Field(None, description="Whose communication library the device speaks, such as nvidia.")

    @model_validator(mode="after")
    def is_whole(self) -> DeviceBlock:
        """Demand all that a device needs, unless the catalogue has it."""
        if self.device is not None:
            return self
        needed = ("name", "memory_gib", "memory_bandwidth_gbyte_per_s")
        if missing := [key for key in needed if getattr(self, key) is None]:
            raise ValueError(f"lacks {', '.join(missing)}; add what is missing, or device: a row of the catalogue")
        if not any((self.bf16_tflops, self.fp16_tflops, self.fp32_tflops)):
            raise ValueError(
                "gives no peak rate; add bf16_tflops, fp16_tflops or fp32_tflops (dense, without sparsity)"
            )
        return self


DeviceField = Annotated[
    Annotated[str, AfterValidator(known(catalog.device)), Tag("<name>")] | Annotated[DeviceBlock, Tag("<block>")],
    Switch,
]


class HostBlock(Record):
    """The machine around the devices of a node."""

    memory_gib: Positive = Field(description="[2^30 bytes] of the node.")
    link: LinkField = Field(description="Between a device and the host: a link of the catalogue, or a block.")


class ProfileRowRecord(Record):
    """Measured layers at one tensor degree and micro-batch: [s] forward, backward, and of the optimizer step."""

    tp: Count
    micro_batch: Count = Field(description="[samples]")
    embedding_s: list[Amount] = Field(min_length=3, max_length=3)
    body_s: list[Positive] = Field(min_length=3, max_length=3, description="Mean over the body layers.")
    head_s: list[Amount] = Field(min_length=3, max_length=3)


class ProfileBlock(Record):
    """Measured times of the layers of one model on the device, used instead of computed ones."""

    file: Text | None = Field(None, description="CSV of the measured layers, beside the cluster file.")
    device: Text | None = Field(None, description="What the file calls the device; defaults to its names.")
    layers: Count = Field(description="Body layers of the model, embedding and head apart.")
    hidden_size: Count | None = Field(None, description="Hidden size of the model; not compared if it is left out.")
    sequence: Count = Field(description="[tokens] of a sample.")
    precision: Literal[tuple(PRECISIONS)] = Field(description="Of the matrix products.")  # type: ignore[valid-type]
    rows: list[ProfileRowRecord] = Field([], description="What the file holds, in a plan file.")

    @model_validator(mode="after")
    def has_times(self) -> ProfileBlock:
        """Demand the file, or what it holds."""
        if (self.file is None) == (not self.rows):
            raise ValueError("should have either file (a CSV of measured layers) or rows")
        return self


class GroupRecord(Record):
    """Identical devices on identical nodes."""

    name: Text | None = Field(None, description="Defaults to the device's name.")
    device: DeviceField = Field(description="Name in the catalogue, or a block.")
    nodes: Count = Field(1, description="Number of nodes.")
    devices_per_node: Count
    intra_node: NodeLinkField | None = Field(
        None, description="Link inside the node; defaults to the usual of the device."
    )
    inter_node: NetworkField | None = Field(None, description="Between nodes; defaults to the usual of the device.")
    tiers: list[TierBlock] = Field([], description="Levels above the node, smallest first.")
    shared_nodes: Text | None = Field(None, description="Name of the nodes that this group shares with others.")
    host: HostBlock | None = None
    profile: ProfileBlock | None = Field(None, description="Measured times of layers; default computed ones.")
    price_per_device_hour: Amount | None = Field(None, description="[currency/h]")
    mtbf_hours: Positive | None = Field(None, description="[h] mean time between failures of one device.")


class ErrorBlock(Record):
    """The size of predicted / measured - 1 over runs."""

    mape: Amount = Field(description="[-] mean.")
    median: Amount = Field(description="[-]")


class ConstantsBlock(Record):
    """Constants of a framework's profile on this machine, those that were fitted."""

    launch_floor_us: Positive | None = Field(None, description="[1e-6 s] to launch the forward pass of a layer.")
    elementwise: Positive | None = Field(None, description="[-] factor on memory-bound passes over the hidden size.")
    elementwise_inner: Positive | None = Field(None, description="[-] the same inside attention and feed-forward.")
    softmax_bytes: Positive | None = Field(None, description="[bytes] per score where attention is not fused.")


class PriorsBlock(Record):
    """Efficiencies of device and network before they were fitted."""

    matmul_efficiency: Share | None = None
    fp8_efficiency: Share | None = None
    fp4_efficiency: Share | None = None
    inter_node_efficiency: Share | None = None


class QuantilesBlock(Record):
    """Percentiles of measured / predicted."""

    p10: Positive
    p50: Positive
    p90: Positive

    @model_validator(mode="after")
    def ascends(self) -> QuantilesBlock:
        """Refuse percentiles out of order."""
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError("should ascend: p10, p50, p90")
        return self


class CalibrationBlock(Record):
    """What measured runs say of the machine, as `planner calibrate` writes it."""

    framework: Annotated[str, AfterValidator(known(catalog.framework))] = Field(description="Whose profile changes.")
    device: Text = Field(description="Name of the device that was measured.")
    rows: Count = Field(description="Runs that were used.")
    runs: Text = Field(description="Digest of these runs.")
    constants: ConstantsBlock
    priors: PriorsBlock
    error_before: ErrorBlock
    error_after: ErrorBlock = Field(description="On the runs that were used.")
    error_cross_validated: ErrorBlock = Field(description="On runs that were not used for the fit.")
    residuals: QuantilesBlock


class ClusterRecord(Record):
    """Groups of devices and what connects them."""

    name: Text | None = None
    groups: list[GroupRecord] = Field(min_length=1)
    links: list[GroupLinkRecord] = Field([], description="Of pairs of groups that have a link of their own.")
    calibration: CalibrationBlock | None = Field(None, description="Written by `planner calibrate`.")
