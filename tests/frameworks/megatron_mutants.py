"""Plans of Megatron-LM with one or two other flags, which may be wrong there."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import dataclass

from configurations.megatron_examples import EXAMPLES, VERSIONS, merged
from frameworks.megatron_plans import capability
from planner.export.frameworks.megatron import MEGATRON
from planner.specs.plan import PlanFile

CHANGES = """
--tensor-model-parallel-size 1 2 3 4 5 8 0
--pipeline-model-parallel-size 1 2 3 4 5 8 16 0
--context-parallel-size 1 2 3 4
--expert-model-parallel-size 1 2 4 8
--expert-tensor-parallel-size 1 2 4
--num-experts 4 8 6
--num-layers 4 5 7 12 16 24 47
--micro-batch-size 1 2 3 0 -1 x
--global-batch-size 1 7 8 36 48 64 100 0
--num-layers-per-virtual-pipeline-stage 1 2 3
--num-virtual-stages-per-pipeline-rank 1 2 3
--microbatch-group-size-per-virtual-pipeline-stage 1 2 4 7
--no-overlap-p2p-communication
--decoder-first-pipeline-num-layers 1 2 3 9
--decoder-last-pipeline-num-layers 1 2 3 9
--account-for-embedding-in-pipeline-split
--account-for-loss-in-pipeline-split
--pipeline-model-parallel-layout Et|tL Ett|ttL Ettt|tt|tt|tL Et|t|t|tL tt|ttL Ett|tt Exx|L
--seq-length 512 1000 1022 2048 4100 8192
--max-position-embeddings 512 131072
--hidden-size 1024 1000 768
--ffn-hidden-size 4096 2730
--num-attention-heads 8 12 16 6 0
--kv-channels 64 80
--group-query-attention
--num-query-groups 2 3 4 8
--sequence-parallel !
--cp-comm-type p2p a2a allgather a2a+p2p ring
--use-tp-pp-dp-mapping
--use-distributed-optimizer !
--overlap-param-gather !
--overlap-grad-reduce !
--use-megatron-fsdp
--data-parallel-sharding-strategy optim optim_grads no_shard optim_grads_params
--ckpt-format torch_dist fsdp_dtensor torch
--use-torch-fsdp2
--optimizer adam sgd muon lion
--recompute-granularity full selective partial
--recompute-method uniform block
--recompute-num-layers 1 2 100 0
--recompute-modules core_attn mlp layernorm moe
--distribute-saved-activations
--bf16 !
--fp16 !
--fp8-format hybrid e4m3 e5m2
--fp8-recipe delayed tensorwise mxfp8 x
--transformer-impl local transformer_engine
--attention-backend flash fused unfused local auto
--vocab-size 1000 50257
--make-vocab-size-divisible-by 1 64 127
--untie-embeddings-and-output-weights !
--position-embedding-type rope learned_absolute none x
--normalization RMSNorm LayerNorm x
--pipeline-modelparallel-size 2
"""
"""A flag and its values a line; without any it is a switch, which ``!`` takes away."""
SHOWN = [text for code, pair in EXAMPLES.items() if code not in VERSIONS for text in pair]
"""What breaks each of our rules, and what does not."""
ITERATIONS = "--train-iters 100"
"""Without these, nothing is asked of the learning rate."""
MOST = 64
"""Ranks: Megatron makes groups of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A command line, and where it runs."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    world: int
    capability: tuple[int, int]
    changes: str


def mutant(seed: int, file: PlanFile) -> Mutant:
    """Return the arguments of a plan with other flags."""
    draw = random.Random(seed)
    assert MEGATRON.program is not None
    program = MEGATRON.program(file)
    changes = " ".join(_change(draw) for _ in range(draw.choice((1, 1, 2))))
    words, variables = merged(" ".join((*program.command[1:], ITERATIONS)), changes)
    return Mutant(
        argv=tuple(words),
        environment={**dict(program.environment), **variables},
        world=file.plan.num_devices,
        capability=capability(file),
        changes=changes,
    )


def _change(draw: random.Random) -> str:
    if draw.random() < 0.4:
        return draw.choice(SHOWN)
    flag, *values = draw.choice(CHANGES.strip().splitlines()).split()
    value = draw.choice(values or [""])
    return f"!{flag}" if value == "!" else f"{flag} {value}"
