"""Tensor parallelism: heads, feed-forward width, vocabulary are cut (Shoeybi et al. 2019, Korthikanti et al. 2022)."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.model import Model, Shard, Work
from planner.domain.plan import Strategy
from planner.parallelism.base import Axis, Collective


def _refine(shard: Shard, degree: int, strategy: Strategy) -> Shard:
    norm_split = shard.norm_split * degree if strategy.sequence_parallel else shard.norm_split
    return replace(shard, weight_split=shard.weight_split * degree, norm_split=norm_split)


def _blocker(model: Model, shard: Shard, degree: int, strategy: Strategy) -> str:
    del strategy
    for layer in (model.embedding, model.body, model.head):
        for what, count in layer.limits():
            if count % degree:
                return f"tp={degree} does not divide {count:,} {what}"
    if shard.sequence % degree:
        return f"tp={degree} does not divide the sequence of {shard.sequence:,} tokens"
    return ""


def _traffic(work: Work, degree: int, strategy: Strategy) -> tuple[Collective, ...]:
    """Each block's partial sums are added in the forward pass, and the gradients of its input in the backward pass.

    With sequence parallelism the sum is cut in two (reduce-scatter, then all-gather before the next block): the
    volume is the same.
    """
    del degree
    ops = ("all_gather", "reduce_scatter") if strategy.sequence_parallel else ("all_reduce",)
    return tuple(
        Collective(op=op, size=work.block_output, count=work.num_blocks, phase=phase)
        for phase in ("forward", "backward")
        for op in ops
    )


def _variants(strategy: Strategy) -> tuple[Strategy, ...]:
    """Sequence parallelism costs no more than the sums it replaces and keeps less: it is always taken."""
    return (replace(strategy, sequence_parallel=strategy.degree("tp") > 1),)


TENSOR = Axis(
    name="tp",
    summary="cuts heads, feed-forward width and vocabulary",
    part="tensor_collectives",
    refine=_refine,
    blocker=_blocker,
    traffic=_traffic,
    variants=_variants,
    beside_products=True,
)
