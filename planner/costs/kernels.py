"""Kernels by name: what an implementation of attention or of a norm costs beside the best one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKernel:
    """An implementation of scores, softmax and weighted sum."""

    fused: bool
    """Whether it runs without storing the scores."""
    efficiency: float
    """[-] of the device's best fused kernel, or of its small products where it is not fused."""
    efficiency_fp8: float
    """[-] the same on devices with 8-bit units (Hopper and later), for which older kernels were not written."""
    score_passes: float
    """[-] factor on the bytes that an unfused softmax moves per score."""
    source: str


ATTENTION_KERNELS = {
    "cudnn": AttentionKernel(
        fused=True,
        efficiency=1.0,
        efficiency_fp8=1.0,
        score_passes=0.0,
        source="cuDNN as Transformer Engine calls it, and FlashAttention 3: what the devices' figures are",
    ),
    "flash2": AttentionKernel(
        fused=True,
        efficiency=1.0,
        efficiency_fp8=0.78,
        score_passes=0.0,
        source="Dao 2023; written for Ampere: on Hopper 0.35 of the peak (Shah et al. 2024, figure 5)",
    ),
    "flash1": AttentionKernel(
        fused=True,
        efficiency=0.7,
        efficiency_fp8=0.5,
        score_passes=0.0,
        source="Dao 2023, figure 4: 0.36 of the A100's peak, not 0.53",
    ),
    "triton": AttentionKernel(
        fused=True,
        efficiency=0.72,
        efficiency_fp8=0.44,
        score_passes=0.0,
        source="llm-foundry's MPT runs: 0.36 of the A100's peak, 0.20 of the H100's",
    ),
    "fused-softmax": AttentionKernel(
        fused=False,
        efficiency=1.0,
        efficiency_fp8=1.0,
        score_passes=1.0,
        source="Megatron-LM scaled masked softmax: scale, mask and softmax in one pass over the scores",
    ),
    "unfused": AttentionKernel(
        fused=False,
        efficiency=1.0,
        efficiency_fp8=1.0,
        score_passes=2.1,
        source="PyTorch: scale, mask, softmax and casts pass one by one; fit on Hagemann et al. 2023",
    ),
}
"""Name, as in published runs -> kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormKernel:
    """An implementation of norms, and of the rotary positions that usually come with it."""

    passes: float
    """[-] bytes that norms and residuals move, of one fused pass each."""
    kept: float
    """[bytes] per token and hidden channel that norms and residuals of a layer keep beside their 16-bit inputs."""
    kept_rotary: float
    """[bytes] per token and query channel that rotary positions keep."""
    source: str


NORM_KERNELS = {
    "fused": NormKernel(
        passes=1.0,
        kept=2.0,
        kept_rotary=0.0,
        source="Korthikanti et al. 2022: 10 bytes a channel outside of the products",
    ),
    "triton": NormKernel(
        passes=1.0, kept=13.0, kept_rotary=3.2, source="nanotron runs (H100): reserved memory, 19 bytes a channel"
    ),
    "unfused": NormKernel(
        passes=5.4,
        kept=14.2,
        kept_rotary=6.4,
        source="PyTorch's RMSNorm in fp32 moves 5 to 7 times as much and keeps copies; fit on Hagemann et al. 2023",
    ),
}
"""Name, as in published runs -> kernel."""
