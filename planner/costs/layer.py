"""Time of one layer and one micro-batch on one device, and the bytes that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from planner.costs.collectives import collective_rate, collective_time
from planner.costs.compute import attention_times, matmul_time, pass_time
from planner.costs.kernels import ATTENTION_KERNELS, NORM_KERNELS, AttentionKernel
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Layer, Matmul, Number, Shard, Work
from planner.domain.plan import Strategy
from planner.parallelism import AXES, Axis, Collective, refined
from planner.recompute import RECOMPUTE_POLICIES
from planner.units import Bytes, Seconds, choose, larger, smaller

ELEMENTWISE_BACKWARD = 1.5
"""[-] bytes that memory-bound passes move in the backward pass, of the forward pass's."""
LAUNCH_BACKWARD = 1.6
"""[-] of the forward pass's launches (public runs bound by launches)."""
LAYER_BLOCKS = 2
"""Blocks of a body layer; embedding and head have one."""
PACING = 3
"""[-] power of the mean by which compute and launches are joined (public runs of small layers)."""
NO_TIME = 1e-30
"""[s] less than anything takes."""
LOSS_BYTES = 16
"""[bytes] moved per logit by the cross entropy, forward and backward (public runs, calibrated)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCost:
    """What one layer costs one device per micro-batch, and what it holds."""

    forward: Seconds
    backward: Seconds
    """[s] without recompute."""
    weight_share: Number
    """[-] of it that makes the gradients of weights, for which no other stage waits: a half of the matrix products."""
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
    update: Seconds = 0.0
    """[s] of the optimizer step of these parameters, nothing sharded, where it is measured."""


def attention_kernel(job: Job, framework: Framework, group: DeviceGroup) -> AttentionKernel:
    """Return the kernel that attention runs in: the framework's, or the best without fusion where it cannot run."""
    kernel = ATTENTION_KERNELS[framework.attention_kernel]
    possible = group.device.fused_attention and job.precision != "fp32"
    return kernel if possible or not kernel.fused else ATTENTION_KERNELS["fused-softmax"]


def layer_shard(job: Job, strategy: Strategy, micro_batch: Number) -> Shard:
    """Return the part of a micro-batch that one device works on under `strategy`."""
    shard = Shard(
        micro_batch=micro_batch,
        sequence=job.sequence,
        bytes_per_element=4 if job.precision == "fp32" else 2,
    )
    return refined(AXES, shard, strategy)


def layer_cost(
    layer: Layer,
    job: Job,
    framework: Framework,
    group: DeviceGroup,
    strategy: Strategy,
    micro_batch: Number,
    *,
    pipelined: bool,
) -> LayerCost:
    """Return the cost of `layer` on one device of `group`."""
    kernel = attention_kernel(job, framework, group)
    norm = NORM_KERNELS[framework.norm_kernel]
    shard = replace(
        layer_shard(job, strategy, micro_batch),
        fused_attention=kernel.fused,
        norm_kept=norm.kept,
        rotary_kept=norm.kept_rotary,
        keeps_gathered=framework.keeps_gathered,
    )
    work = layer.work(shard)
    parts = _compute_parts(work, shard, job, framework, group, kernel)
    gradients = _products_time([matmul for matmul in work.matmuls if matmul.cut], shard, job, framework, group)
    parts.update(_traffic_parts(work, framework, group, strategy, parts, gradients))
    forward = sum((times[0] for times in parts.values()), start=0.0)
    backward = sum((times[1] for times in parts.values()), start=0.0)
    floor = _launch_floor(work, framework, strategy, pipelined=pipelined)
    forward_paced, backward_paced = _paced(forward, floor), _paced(backward, LAUNCH_BACKWARD * floor)
    named = {name: times[0] + times[1] for name, times in parts.items()}
    named["launch"] = forward_paced - forward + backward_paced - backward
    replayed = {
        "nothing": 0.0,
        "attention": parts.get("attention", (0.0, 0.0))[0],
        "half": parts["matmul"][0] / 2 + parts["elementwise"][0],
        "layer": forward_paced,
    }
    if shard.fused_attention:
        replayed["attention"] = 0.0
    return LayerCost(
        forward=forward_paced,
        backward=backward_paced,
        weight_share=parts["matmul"][0] / larger(backward, NO_TIME),
        replay=tuple((policy.name, replayed[policy.replays]) for policy in RECOMPUTE_POLICIES),
        kept=tuple((policy.name, _kept(work, policy.keeps, shard.fused_attention)) for policy in RECOMPUTE_POLICIES),
        parts=tuple(named.items()),
        parameters=work.parameters,
        tied_parameters=work.tied_parameters,
        transient=work.transient,
        logits=work.logits * (shard.weight_split if _gathers(framework, work) else 1),
    )


def _launch_floor(work: Work, framework: Framework, strategy: Strategy, *, pipelined: bool) -> Seconds:
    """Return the time [s] that the host needs to launch the layer's forward pass."""
    if work.num_blocks < LAYER_BLOCKS:
        return framework.launch_edge
    unfused = framework.unfused_launches if work.gated else 1.0
    per_rank = framework.launch_tensor_pipeline if pipelined else framework.launch_tensor
    return framework.launch_floor * unfused + per_rank * (strategy.degree("tp") - 1)


def _paced(compute: Seconds, launch: Seconds) -> Seconds:
    """Return the time [s] of kernels that take `compute` in all and as long as `launch` to be launched.

    Some kernels of a layer wait for the host and others do not: the larger of both far from each other, more where
    they are alike.
    """
    return (compute**PACING + launch**PACING) ** (1 / PACING)


def _gathers(framework: Framework, work: Work) -> bool:
    """Tell whether every tensor rank holds the logits of the whole vocabulary."""
    untied = isinstance(work.tied_parameters, float) and work.tied_parameters == 0.0
    return framework.gathered_logits == "always" or (framework.gathered_logits == "untied" and untied)


def _kept(work: Work, keeps: frozenset[str], fused: bool) -> Bytes:
    """Return the bytes kept; a fused kernel's statistics are part of what any policy but full keeps."""
    kept = keeps | {"scores"} if fused and "inner" in keeps else keeps
    return sum((saved.size for saved in work.saved if saved.tag in kept), start=0.0)


def _compute_parts(
    work: Work, shard: Shard, job: Job, framework: Framework, group: DeviceGroup, kernel: AttentionKernel
) -> dict[str, tuple[Seconds, Seconds]]:
    """Return (forward, backward) seconds by part; products cost twice as much backward (input and weight gradient)."""
    device, element = group.device, shard.bytes_per_element
    products = _products_time(work.matmuls, shard, job, framework, group)
    norms = framework.elementwise * NORM_KERNELS[framework.norm_kernel].passes
    unfused = framework.unfused_passes if work.gated else 1.0
    moved = unfused * (norms * work.norm_bytes + framework.elementwise_inner * work.inner_bytes)
    passes = pass_time(moved, device)
    parts = {"matmul": (products, 2 * products), "elementwise": (passes, ELEMENTWISE_BACKWARD * passes)}
    if work.attention is not None:
        parts["attention"] = attention_times(work.attention, device, framework, kernel, element)
    if isinstance(work.logits, float) and work.logits == 0.0:  # layers without logits say so with their default
        return parts
    ranks = shard.weight_split if _gathers(framework, work) else 1
    loss = pass_time(LOSS_BYTES * work.logits * ranks, device)
    size = work.logits * ranks * element
    rate, latency = group.intra_node.collective_rate(ranks, 1, size / ranks), group.intra_node.latency_within(ranks)
    gather = collective_time("all_gather", size, ranks, rate, latency, start=framework.collective_latency)
    parts["loss"] = (loss / 2 + gather, loss / 2)
    return parts


def _products_time(
    matmuls: Iterable[Matmul], shard: Shard, job: Job, framework: Framework, group: DeviceGroup
) -> Seconds:
    """Return the forward time [s] of products; the gradients of their weights take as long."""
    element = shard.bytes_per_element
    times = (matmul_time(matmul, group.device, framework, job.precision, element) for matmul in matmuls)
    return sum(times, start=0.0)


def _traffic_parts(
    work: Work,
    framework: Framework,
    group: DeviceGroup,
    strategy: Strategy,
    beside: Mapping[str, tuple[Seconds, Seconds]],
    gradients: Seconds,
) -> dict[str, tuple[Seconds, Seconds]]:
    """Return (forward, backward) seconds that the layer waits for the collectives of each axis in use.

    `beside` are its computations, `gradients` those of the weights of products whose output is cut.
    """
    parts: dict[str, tuple[Seconds, Seconds]] = {}
    for axis, inner in _spans(strategy):
        ranks = strategy.degree(axis.name)
        if isinstance(ranks, int) and ranks == 1:
            continue
        times: list[Seconds] = [0.0, 0.0]
        for collective in axis.traffic(work, ranks, strategy):
            way = ("forward", "backward").index(collective.phase)
            hiding = beside[collective.behind][way] if collective.behind else 0.0
            rate = collective_rate(collective.op, group, ranks, inner, collective.size)
            start, latency = _latency(collective, framework, group, ranks * inner)
            time = collective_time(collective.op, collective.size, ranks, rate, latency, start=start, beside=hiding)
            times[way] += collective.count * time
        hidden = _hidden(times, beside["matmul"], gradients, framework, group) if axis.beside_products else (0.0, 0.0)
        parts[axis.part] = (times[0] - hidden[0], times[1] - hidden[1])
    return parts


def _hidden(
    times: Sequence[Seconds],
    products: tuple[Seconds, Seconds],
    gradients: Seconds,
    framework: Framework,
    group: DeviceGroup,
) -> tuple[Seconds, Seconds]:
    """Return the (forward, backward) seconds of collectives next to products that nothing waits for.

    A share of the time in which both run, and no more. Fused kernels run beside all products. Without them the sum of
    the gradients of a product's input runs beside the `gradients` of its weights, in the backward pass (Megatron-LM,
    ``LinearWithGradAccumulationAndAsyncCommunication``).
    """
    fused = framework.overlap_tensor if group.device.has("fp8") else 0.0
    forward, backward = (fused * smaller(time, beside) for time, beside in zip(times, products, strict=True))
    return forward, larger(backward, framework.overlap_tensor_backward * smaller(times[1], gradients))


def _latency(collective: Collective, framework: Framework, group: DeviceGroup, span: Number) -> tuple[Seconds, Seconds]:
    """Return the start [s] of a collective over `span` devices, and its latency [s] of each doubling or ring step.

    The start belongs to a block's exchange; halves of it (reduce-scatter, all-gather) and one-way ones share it.
    """
    inside = group.intra_node.latency_within(span)
    latency = choose(span <= group.devices_per_node, inside, group.inter_node.latency)
    if collective.op == "ring":
        return 0.0, framework.hop_latency + latency
    share = 1.0 if collective.op == "all_reduce" else 0.5
    return share * framework.collective_latency, share * latency


def _spans(strategy: Strategy) -> Iterable[tuple[Axis, int]]:
    """Yield each axis with the number of devices between neighbours on it: the degrees of the axes inside it."""
    degrees = [strategy.degree(axis.name) for axis in AXES]
    for index, axis in enumerate(AXES):
        yield axis, prod(degrees[:index])
