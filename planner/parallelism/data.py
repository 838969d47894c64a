"""Data parallelism: replicas of the pipeline, and what they share (Rajbhandari et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroStage:
    """Which tensors are cut over the replicas."""

    stage: int
    optimizer: bool
    gradients: bool
    weights: bool
    summary: str


ZERO_STAGES = (
    ZeroStage(stage=0, optimizer=False, gradients=False, weights=False, summary="replicated"),
    ZeroStage(stage=1, optimizer=True, gradients=False, weights=False, summary="optimizer sharded"),
    ZeroStage(stage=2, optimizer=True, gradients=True, weights=False, summary="optimizer and gradients sharded"),
    ZeroStage(stage=3, optimizer=True, gradients=True, weights=True, summary="everything sharded (FSDP)"),
)
