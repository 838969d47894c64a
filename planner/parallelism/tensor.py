"""Tensor parallelism: heads, feed-forward width, vocabulary are cut (Shoeybi et al. 2019, Korthikanti et al. 2022)."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.model import Model, Number, Shard, Work
from planner.parallelism.base import Axis, Collective


def _refine(shard: Shard, degree: Number, sequence_parallel: bool) -> Shard:
    norm_split = shard.norm_split * degree if sequence_parallel else shard.norm_split
    return replace(shard, weight_split=shard.weight_split * degree, norm_split=norm_split)


def _blocker(model: Model, sequence: int, degree: int) -> str:
    for layer in (model.embedding, model.body, model.head):
        for what, count in layer.limits():
            if count % degree:
                return f"tp={degree} does not divide {count:,} {what}"
    if sequence % degree:
        return f"tp={degree} does not divide the sequence of {sequence:,} tokens"
    return ""


def _traffic(work: Work, degree: Number, sequence_parallel: bool) -> tuple[Collective, ...]:
    """Each block's partial sums are added in the forward pass, and the gradients of its input in the backward pass.

    With sequence parallelism the sum is cut in two (reduce-scatter, then all-gather before the next block): the
    volume is the same.
    """
    del degree
    ops = ("all_gather", "reduce_scatter") if sequence_parallel else ("all_reduce",)
    return tuple(
        Collective(op=op, size=work.block_output, count=work.num_blocks, phase=phase)
        for phase in ("forward", "backward")
        for op in ops
    )


TENSOR = Axis(
    name="tp",
    summary="cuts heads, feed-forward width and vocabulary",
    refine=_refine,
    blocker=_blocker,
    traffic=_traffic,
    beside_products=True,
)
