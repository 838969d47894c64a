"""A measured run: one row of a CSV file, its configuration and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run, its fields named as the columns; what the source does not say is None, or empty text."""

    place: str
    """Where it stands, as in ``runs.csv, line 12``."""
    row: Mapping[str, str] = field(repr=False, hash=False)
    """Column -> cell as it was read, columns that mean nothing here included."""

    id: str
    framework: str
    """What trained it."""
    flag: str
    """Why the row is doubtful; empty if nothing is known against it."""
    source: str
    """Who measured, and where that is published."""

    model: str
    params_b: float | None
    """[10^9 parameters]"""
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    ffn: int | None
    """Width of the dense feed-forward block."""
    vocab: int | None
    seq: int | None
    """[tokens] of one sample."""
    moe_experts: int | None
    moe_topk: int | None
    moe_ffn: int | None
    """Width of one expert."""

    gpu: str
    gpus: int | None
    gpus_per_node: int | None
    intra_node: str
    """Link inside a node, in the source's words."""
    inter_node: str
    """Network between nodes, in the source's words."""
    busbw_allreduce_gbyte_per_s: float | None
    """[10^9 bytes/s] bus bandwidth, measured inside the same job, as the next two."""
    busbw_allgather_gbyte_per_s: float | None
    busbw_reducescatter_gbyte_per_s: float | None

    precision: str
    tp: int | None
    pp: int | None
    vpp: int | None
    """Virtual stages of a rank."""
    dp: int | None
    """Data-parallel size, context ranks not counted."""
    cp: int | None
    ep: int | None
    zero: int | None
    """ZeRO stage; FSDP is 3."""
    shard_group: int | None
    """Ranks that share one copy, where that is not all of dp."""
    sp: int | None
    """1: sequence parallelism in the manner of Megatron."""
    mbs: int | None
    """[samples] of a micro-batch."""
    gbs: int | None
    """[samples] of a step."""
    recompute: str
    """none, selective or full."""
    recompute_modules: str
    """What a selective policy recomputes."""
    schedule: str
    stage_layers: str
    """Layers of each stage, with blanks between."""
    placement: str
    """Where the stages sat, in the source's words."""
    attention_kernel: str
    """flash2, flash1, fused-softmax or unfused."""
    norm_kernel: str
    """fused or unfused."""
    grad_bytes: int | None
    """[bytes] of one gradient."""

    iter_time_s: float | None
    """[s] of a step."""
    tokens_per_s_per_gpu: float | None
    mfu: float | None
    """[-] share of the peak, by the source's own count of FLOP."""
    mem_gib_per_gpu: float | None
    """[GiB] peak of the fullest device."""
    oom: str
    """0 ran, 1 out of memory, ``fail`` failed otherwise, empty unknown."""
    notes: str

    @property
    def tokens_per_step(self) -> int | None:
        """[tokens] of one step."""
        return self.gbs * self.seq if self.gbs is not None and self.seq is not None else None

    @property
    def step_time(self) -> float | None:
        """[s] as measured: as printed, or what the measured tokens per second come to."""
        if self.iter_time_s is not None:
            return self.iter_time_s
        if self.tokens_per_step is None or self.tokens_per_s_per_gpu is None or self.gpus is None:
            return None
        return self.tokens_per_step / (self.tokens_per_s_per_gpu * self.gpus)

    @property
    def peak_memory(self) -> float | None:
        """[bytes] as measured; a run that ran out of memory does not tell what it needed."""
        return None if self.mem_gib_per_gpu is None or self.oom == "1" else self.mem_gib_per_gpu * GIB
