"""Facts of a training framework that decide time and memory, and what it can run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What plans a framework can carry."""

    schedules: tuple[str, ...]
    zero_stages: tuple[int, ...]
    """Without pipeline stages."""
    zero_stages_pipeline: tuple[int, ...]
    """With more than one pipeline stage; empty if the framework has no pipeline."""
    tensor_parallel: bool
    sequence_parallel: bool
    """Whether norms and residuals may be cut along the sequence by the tensor axis."""
    cp_comm_types: tuple[str, ...]
    """How context ranks may exchange, without pipeline stages; empty if the framework has no context axis."""
    cp_comm_types_pipeline: tuple[str, ...]
    """With more than one pipeline stage."""
    cp_zero_stages: tuple[int, ...]
    """With context ranks: some frameworks share their weights only by sharding them."""
    tp_zero_stages: tuple[int, ...]
    """With tensor ranks: some frameworks cannot copy weights that tensor ranks cut, but only shard them."""
    uneven_layers: bool
    """Stages with unlike numbers of layers."""
    uneven_tensor_parallel: bool
    """Stages with unlike tensor degrees."""
    uneven_recompute: bool
    """Stages with unlike numbers of recomputed layers."""
    partial_recompute: bool
    """Stages in which some layers are recomputed and others not."""
    mixed_devices: bool
    """Devices of several kinds, of one vendor."""
    several_vendors: bool
    """Devices of vendors whose communication libraries do not speak with one another."""
    uneven_data_parallel: bool
    """Stages with a dp of their own, which divide micro-batches unlike ways."""
    uneven_replicas: bool
    """Replicas that are not alike: other stages, or other numbers of micro-batches."""
    version: str
    """Versions for which this was checked."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A profile of costs and memory."""

    name: str
    gradient_bytes: int
    """[bytes] of one gradient."""
    weight_bytes: int
    """[bytes] of one working weight."""
    optimizer_bytes: int
    """[bytes] of master weight and optimizer state per parameter, of the usual optimizer."""
    weights_in_master: bool
    """Whether the working weight is a copy of the master weight that is not kept beside it (FSDP)."""
    update_temporary_bytes: float
    """[bytes] per parameter whose state a device holds, of temporaries while the optimizer makes or updates it."""
    gradients_at_creation: bool
    """Whether gradients are held already while the optimizer makes its states."""
    logit_bytes: float
    """[bytes] per token and vocabulary entry that the loss holds at its peak."""
    gathered_logits: str
    """Whether every tensor rank holds the logits of the whole vocabulary: ``never``, ``always``, or ``untied`` where
    the head has weights of its own."""
    attention_kernel: str
    """Usual kernel (see `planner.costs.kernels`)."""
    norm_kernel: str
    """``fused`` or ``unfused``."""
    matmul_quality: float
    """[-] factor on the device's efficiency of matrix products."""
    launch_floor: float
    """[s] that the host needs to launch the forward pass of one layer."""
    launch_edge: float
    """[s] the same for the embedding, and for the head."""
    launch_tensor: float
    """[s] on top of the floor, for each tensor rank beyond the first."""
    launch_tensor_pipeline: float
    """[s] the same, where there is a pipeline."""
    unfused_launches: float
    """[-] factor on the launches of gated layers; 1 where their kernels are fused as those of GPT's layer are."""
    unfused_passes: float
    """[-] factor on the memory-bound passes of gated layers; 1 where their kernels are fused."""
    selective: str
    """Policy that its users mean by selective recompute: ``selective`` (of attention's scores) or ``op``."""
    stage_split: str
    """How it cuts layers into stages by itself: ``equal``, ``balanced`` or ``cumulative`` (`planner.costs.split`)."""
    split_counts: tuple[str, ...]
    """Ends that weigh in the split, by their parameters: ``embedding``, ``head``."""
    sequence_parallel: bool
    """Whether its users usually cut norms and residuals along the sequence by the tensor axis."""
    elementwise: float
    """[-] factor on memory-bound passes over the hidden size."""
    elementwise_inner: float
    """[-] factor on memory-bound passes inside attention and feed-forward."""
    softmax_bytes: float
    """[bytes] moved per attention score where attention is not fused."""
    saturation: float
    """[-] size of a dimension at which a matrix product reaches half of its efficiency."""
    collective_latency: float
    """[s] per doubling of the ranks of a tensor collective."""
    hop_latency: float
    """[s] of one transfer between pipeline stages, on top of the link's."""
    overlap_tensor_backward: float
    """[-] of the time in which a tensor collective of the backward pass and a product of weight gradients both run, the
    share that is gained."""
    blocking_transfers: bool
    """Whether a stage waits for what it sends, in schedules that leave nothing to be done meanwhile."""
    scattered_hops: bool
    """Whether tensor ranks send a part each between stages, and gather it behind."""
    overlap_replicated: float
    """[-] share of the last backward pass that hides the exchange of gradients, ZeRO stage 0."""
    overlap_sharded: float
    """[-] the same for ZeRO stages 1 and 2."""
    overlap_gather: float
    """[-] share of a layer's compute that hides the gathering of its weights, ZeRO stage 3."""
    exposed_gather: float
    """[-] share of the gathering that is never hidden, ZeRO stage 3."""
    gradients_wait: bool
    """Whether, with a pipeline, gradients are added up whole until the last micro-batch, whatever ZeRO shards."""
    overlap_tensor: float
    """[-] the same for a tensor collective and the product that it is fused with, both ways."""
    step_overhead: float
    """[s] of every step outside of the model: data, logging, host synchronisation."""
    keeps_gathered: bool
    """Whether, with sequence parallelism, the gathered inputs of both blocks of a layer are kept for the backward pass;
    else they are gathered again."""
    fragmentation: float
    """[-] factor on activations that the allocator needs."""
    outside_allocator: float
    """[bytes] per device outside of the allocator: context, communicators, workspace."""
    can: Capability
    source: str
