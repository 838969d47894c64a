"""Time of one layer and one micro-batch on one device, and the bytes that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from planner.costs.collectives import collective_time, ring_rate
from planner.costs.compute import attention_times, matmul_time, pass_time
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Layer, Number, Shard, Work
from planner.domain.plan import Strategy
from planner.parallelism import AXES, Axis
from planner.recompute import RECOMPUTE_POLICIES
from planner.units import Bytes, Seconds, larger

ELEMENTWISE_BACKWARD = 1.5
"""[-] bytes that memory-bound passes move in the backward pass, of the forward pass's."""
LAUNCH_BACKWARD = 1.6
"""[-] of the forward pass's launches (public runs bound by launches)."""
LOSS_BYTES = 16
"""[bytes] moved per logit by the cross entropy, forward and backward (public runs, calibrated)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCost:
    """What one layer costs one device per micro-batch, and what it holds."""

    forward: Seconds
    backward: Seconds
    """[s] without recompute."""
    replay: tuple[tuple[str, Seconds], ...]
    """[s] that the backward pass grows by, per recompute policy."""
    kept: tuple[tuple[str, Bytes], ...]
    """[bytes] of activations per micro-batch in flight, per recompute policy."""
    parts: tuple[tuple[str, Seconds], ...]
    """[s] of forward and backward pass by what they are spent on."""
    parameters: Number
    """[-] on the device."""
    tied_parameters: Number
    """[-] of these, copies of the embedding's weights."""
    transient: Bytes
    """[bytes] while the layer runs."""
    logits: Number
    """[-] that the loss works on, on the device."""


def layer_shard(job: Job, group: DeviceGroup, strategy: Strategy, micro_batch: Number) -> Shard:
    """Return the part of a micro-batch that one device of `group` works on under `strategy`."""
    shard = Shard(
        micro_batch=micro_batch,
        sequence=job.sequence,
        fused_attention=group.device.fused_attention and job.precision != "fp32",
        bytes_per_element=4 if job.precision == "fp32" else 2,
    )
    for axis in AXES:
        shard = axis.refine(shard, strategy.degree(axis.name), strategy.sequence_parallel)
    return shard


def layer_cost(
    layer: Layer, job: Job, framework: Framework, group: DeviceGroup, strategy: Strategy, micro_batch: Number
) -> LayerCost:
    """Return the cost of `layer` on one device of `group`."""
    shard = layer_shard(job, group, strategy, micro_batch)
    work = layer.work(shard)
    parts = _compute_parts(work, shard, job, framework, group)
    sends = [_traffic_time(work, framework, group, strategy, phase) for phase in ("forward", "backward")]
    forward = sum((times[0] for times in parts.values()), start=sends[0])
    backward = sum((times[1] for times in parts.values()), start=sends[1])
    launched = bool(work.num_blocks > 1)
    floor = framework.launch_floor if launched else 0.0
    forward_paced, backward_paced = larger(forward, floor), larger(backward, LAUNCH_BACKWARD * floor)
    named = {name: times[0] + times[1] for name, times in parts.items()}
    named["tensor_collectives"] = sends[0] + sends[1]
    named["launch"] = forward_paced - forward + backward_paced - backward
    replayed = {"nothing": 0.0, "attention": parts.get("attention", (0.0, 0.0))[0], "layer": forward_paced}
    if shard.fused_attention:
        replayed["attention"] = 0.0
    return LayerCost(
        forward=forward_paced,
        backward=backward_paced,
        replay=tuple((policy.name, replayed[policy.replays]) for policy in RECOMPUTE_POLICIES),
        kept=tuple((policy.name, _kept(work, policy.keeps, shard.fused_attention)) for policy in RECOMPUTE_POLICIES),
        parts=tuple(named.items()),
        parameters=work.parameters,
        tied_parameters=work.tied_parameters,
        transient=work.transient,
        logits=work.logits * (shard.weight_split if framework.gathered_logits else 1),
    )


def _kept(work: Work, keeps: frozenset[str], fused: bool) -> Bytes:
    """Return the bytes kept; a fused kernel's statistics are part of what any policy but full keeps."""
    kept = keeps | {"scores"} if fused and "inner" in keeps else keeps
    return sum((saved.size for saved in work.saved if saved.tag in kept), start=0.0)


def _compute_parts(
    work: Work, shard: Shard, job: Job, framework: Framework, group: DeviceGroup
) -> dict[str, tuple[Seconds, Seconds]]:
    """Return (forward, backward) seconds by part; products cost twice as much backward (input and weight gradient)."""
    device, element = group.device, shard.bytes_per_element
    products = sum(
        (matmul_time(matmul, device, framework, job.precision, element) for matmul in work.matmuls), start=0.0
    )
    moved = framework.elementwise * work.norm_bytes + framework.elementwise_inner * work.inner_bytes
    passes = pass_time(moved, device)
    parts = {"matmul": (products, 2 * products), "elementwise": (passes, ELEMENTWISE_BACKWARD * passes)}
    if work.attention is not None:
        parts["attention"] = attention_times(work.attention, device, framework, shard.fused_attention, element)
    if isinstance(work.logits, (int, float)) and work.logits == 0:
        return parts
    ranks = shard.weight_split if framework.gathered_logits else 1
    loss = pass_time(LOSS_BYTES * work.logits * ranks, device)
    size = work.logits * ranks * element
    gather = collective_time("all_gather", size, ranks, group.intra_node.rate, framework.collective_latency)
    parts["loss"] = (loss / 2 + gather, loss / 2)
    return parts


def _traffic_time(work: Work, framework: Framework, group: DeviceGroup, strategy: Strategy, phase: str) -> Seconds:
    """Return the seconds that the collectives of all axes take in `phase`, those hidden behind products left out."""
    total: Seconds = 0.0
    for axis, inner in _spans(strategy):
        ranks = strategy.degree(axis.name)
        if ranks == 1:
            continue
        rate = ring_rate(group, ranks, inner)
        exposed = 1.0 - framework.overlap_tensor if axis.beside_products else 1.0
        for collective in axis.traffic(work, ranks, strategy.sequence_parallel):
            if collective.phase == phase:
                # Latency belongs to a block's exchange; halves of it (reduce-scatter, all-gather) share it.
                latency = framework.collective_latency * (1.0 if collective.op == "all_reduce" else 0.5)
                time = collective_time(collective.op, collective.size, ranks, rate, latency)
                total += exposed * collective.count * time
    return total


def _spans(strategy: Strategy) -> Iterable[tuple[Axis, int]]:
    """Yield each axis with the number of devices between neighbours on it: the degrees of the axes inside it."""
    degrees = [strategy.degree(axis.name) for axis in AXES]
    for index, axis in enumerate(AXES):
        yield axis, prod(degrees[:index])
