"""Context parallelism: each sample is cut along its tokens, and attention sees the others' keys and values.

Two forms, called as in Megatron's ``--cp-comm-type``. ``p2p``: keys and values go round a ring while the attention of
the block at hand runs (Liu et al. 2023, "Ring Attention with Blockwise Transformers"). ``a2a``: for the attention the
ranks exchange tokens for heads, and back (Jacobs et al. 2023, "DeepSpeed Ulysses").
"""

from __future__ import annotations

from dataclasses import replace

from planner.domain.job import Job
from planner.domain.model import Model, Shard, Work
from planner.domain.plan import Strategy
from planner.parallelism.base import Axis, Collective

LONG_SEQUENCE = 16_384
"""[tokens] from which the search tries degrees above 1 by itself: below, a micro-batch of one sample is small enough
for a device, and the many more choices would cost time for nothing."""


def _refine(shard: Shard, degree: int, strategy: Strategy) -> Shard:
    del strategy
    return replace(shard, sequence_split=shard.sequence_split * degree)


def _blocker(model: Model, shard: Shard, degree: int, strategy: Strategy) -> str:
    """Tell what `degree` does not divide: tokens in both forms, and heads where ranks exchange tokens for them.

    Each rank takes a piece from the front and one from the back of a sample (zig-zag), so that a causal mask loads all
    ranks alike; Megatron cuts so in both forms.
    """
    if shard.sequence % (2 * degree):
        return (
            f"cp={degree} needs a sequence that {2 * degree} divides (two pieces a rank), not {shard.sequence:,} tokens"
        )
    if shard.sequence // degree % shard.norm_split:
        return f"cp={degree} leaves {shard.sequence // degree:,} tokens, which {shard.norm_split} ranks cannot share"
    if strategy.cp_comm_type == "a2a":
        for what, count in model.body.limits():
            if "heads" in what and count % (shard.weight_split * degree):
                left = f"{count // shard.weight_split:,} {what} that a rank has"
                return f"cp={degree} with a2a does not divide the {left}"
    return ""


def _traffic(work: Work, degree: int, strategy: Strategy) -> tuple[Collective, ...]:
    """Ring: keys and values pass every rank forward; backward their gradients come with them, twice the volume.

    All-to-all: queries, keys, values and the output change places forward, and their gradients backward.
    """
    if work.attention is None:
        return ()
    if strategy.cp_comm_type == "a2a":
        return tuple(
            Collective(op="all_to_all", size=size, count=2, phase=phase)
            for phase in ("forward", "backward")
            for size in (work.queries, work.keys_values / 2)
        )
    whole = work.keys_values * degree
    return (
        Collective(op="ring", size=whole, count=1, phase="forward", behind="attention"),
        Collective(op="ring", size=2 * whole, count=1, phase="backward", behind="attention"),
    )


def _searched(job: Job) -> bool:
    return job.sequence >= LONG_SEQUENCE


def _variants(strategy: Strategy) -> tuple[Strategy, ...]:
    return (strategy, replace(strategy, cp_comm_type="a2a")) if strategy.degree("cp") > 1 else (strategy,)


CONTEXT = Axis(
    name="cp",
    summary="cuts each sample along its tokens",
    part="context_collectives",
    refine=_refine,
    blocker=_blocker,
    traffic=_traffic,
    replicates=True,
    searched=_searched,
    variants=_variants,
)
