"""Time of computations on one device: a roofline (Williams et al. 2009) with efficiencies from the catalogue."""

from __future__ import annotations

from functools import reduce

from planner.costs.kernels import AttentionKernel
from planner.domain.cluster import Device
from planner.domain.framework import Framework
from planner.domain.model import AttentionCore, Matmul, Number
from planner.domain.precision import PRECISIONS
from planner.units import Seconds, larger

MEMORY_EFFICIENCY = 0.85
"""[-] share of the memory bandwidth that streaming kernels reach."""
FLASH_BACKWARD_FLOPS = 2.5
"""[-] of the forward pass: five products instead of two (Dao et al. 2022)."""
FLASH_BACKWARD_EFFICIENCY = 0.85
"""[-] of the forward kernel's (Dao 2023, figures 4 to 6)."""
UNFUSED_EFFICIENCY = 0.6
"""[-] of large products' efficiency: the products of one head are small."""
HALF_PRECISIONS = ("bf16", "fp16")


def half_peak(device: Device) -> Number:
    """Return the 16-bit peak [FLOP/s], or the fp32 peak of a device that has none."""
    return reduce(larger, (device.peak(precision) for precision in (*HALF_PRECISIONS, "fp32")))


def matmul_peak(device: Device, precision: str) -> float:
    """Return the peak [FLOP/s] of matrix products in `precision`; 0.0 if the device cannot run it."""
    return device.peak(precision)


def matmul_time(matmul: Matmul, device: Device, framework: Framework, precision: str, element: int) -> Seconds:
    """Return the time [s] of the products, bound by arithmetic or by memory.

    The efficiency falls with each small dimension: e = e_max / ((1 + d0/m)(1 + d0/n)(1 + d0/k)). Inputs are read in
    `precision`, and what comes out is written with `element` bytes.
    """
    m, n, k, d0 = matmul.m, matmul.n, matmul.k, framework.saturation
    losses = (1 + d0 / m) * (1 + d0 / n) * (1 + d0 / k)
    efficiency = device.efficiency(precision) * framework.matmul_quality
    arithmetic = 2 * m * n * k * losses / (matmul_peak(device, precision) * efficiency)
    memory = pass_time((n * k + m * k) * PRECISIONS[precision].input_bytes + m * n * element, device)
    return matmul.count * larger(arithmetic, memory)


def pass_time(size: Number, device: Device) -> Seconds:
    """Return the time [s] of a memory-bound kernel that moves `size` bytes."""
    return size / (MEMORY_EFFICIENCY * device.memory_bandwidth)


def attention_times(
    core: AttentionCore, device: Device, framework: Framework, kernel: AttentionKernel, element: int
) -> tuple[Seconds, Seconds]:
    """Return the forward and backward time [s] of an attention core.

    Fused kernels skip masked blocks: half of the scores where attention is causal. Unfused kernels compute all of
    them and move each score through memory several times.
    """
    flops = 4 * core.queries * core.keys * core.head_dim
    quality = kernel.efficiency_fp8 if device.has("fp8") else kernel.efficiency
    if kernel.fused:
        visible = 0.5 if core.causal else 1.0
        forward = visible * flops / (half_peak(device) * device.attention_efficiency * quality)
        return forward, forward * FLASH_BACKWARD_FLOPS / FLASH_BACKWARD_EFFICIENCY
    rate = half_peak(device) * device.matmul_efficiency * UNFUSED_EFFICIENCY * quality
    scores = framework.softmax_bytes * kernel.score_passes * core.queries * core.keys * element
    forward = flops / rate + pass_time(scores, device)
    return forward, 2 * forward
