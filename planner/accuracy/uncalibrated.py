"""Predictions from data sheets alone, to show what the constants that were fitted are worth."""

from __future__ import annotations

from dataclasses import replace

from planner.accuracy.setting import Setting
from planner.domain.cluster import Device
from planner.domain.confidence import chip
from planner.domain.framework import Framework
from planner.units import GIB, MICROSECOND

CEILINGS = {"a100": 0.87, "h100": 0.80, "h200": 0.80, "v100": 0.76} | dict.fromkeys(
    ("b200", "b300", "gb200", "gb300"), 0.75
)
"""[-] chip -> best share of the peak measured over shapes of matrix products (stas00/ml-engineering, MAMF; V100: 95 of
125 TFLOP/s, mli/transformers-benchmarks)."""


def uncalibrated(setting: Setting) -> Setting:
    """Return the setting with the same constants for every framework, none of them fitted to a training run.

    What a framework is known to do stays: bytes per parameter, kernels, how it cuts stages and gathers logits. So do
    links and networks, whose figures are those of sheets and collective benchmarks.
    """
    return setting.changed(
        framework=_framework(setting.layout.framework),
        group=lambda group: replace(group, device=_device(group.device)),
    )


def _device(device: Device) -> Device:
    """Return the device with its measured ceiling, the same in every precision."""
    return replace(device, matmul_efficiency=CEILINGS.get(chip(device.name), device.matmul_efficiency), efficiencies=())


def _framework(framework: Framework) -> Framework:
    """Return the profile with textbook constants.

    Kernels move each byte once (element-wise factors 1), products lose nothing by being small, a layer takes the host
    half a millisecond (some fifteen kernels of 30 us), a collective starts in 40 us and a hop in 15 us
    (NCCL's latencies with the host's), nothing is hidden behind the backward pass, gathered weights are hidden behind
    nine tenths of the compute, a step costs 20 ms besides, and the allocator wastes nothing but 2 GiB of context.
    """
    return replace(
        framework,
        matmul_quality=1.0,
        saturation=0.0,
        elementwise=1.0,
        elementwise_inner=1.0,
        softmax_bytes=8.0,
        launch_floor=500 * MICROSECOND,
        launch_edge=0.0,
        launch_tensor=0.0,
        launch_tensor_pipeline=0.0,
        unfused_launches=1.0,
        unfused_passes=1.0,
        collective_latency=40 * MICROSECOND,
        hop_latency=15 * MICROSECOND,
        overlap_tensor=0.0,
        overlap_tensor_backward=0.0,
        overlap_replicated=0.0,
        overlap_sharded=0.0,
        overlap_gather=0.9,
        exposed_gather=0.1,
        step_overhead=0.020,
        fragmentation=1.0,
        outside_allocator=2.0 * GIB,
    )
