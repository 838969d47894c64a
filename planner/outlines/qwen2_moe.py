"""Qwen1.5-MoE and Qwen2-MoE: Qwen2's layers with experts, some of them shared behind a gate."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; layer i has experts where ``decoder_sparse_step`` divides i + 1, unless listed as dense."""
    number, norms = fields.num_layers(), 2 * fields.count("hidden_size")
    step = fields.count("decoder_sparse_step", default=1)
    only_dense = fields.indices("mlp_only_layers", number) or frozenset()
    attention = fields.attention(bias=fields.flag("qkv_bias", default=True))
    experts = fields.experts(
        fields.count("moe_intermediate_size"),
        num_shared=1,
        shared_size=fields.count("shared_expert_intermediate_size"),
        shared_gate=True,
    )
    sparse = Block(mixer=attention, feed_forward=experts, norm_parameters=norms)
    dense = Block(mixer=attention, feed_forward=fields.dense(fields.count("intermediate_size")), norm_parameters=norms)
    blocks = (dense if i in only_dense or (i + 1) % step else sparse for i in range(number))
    return fields.facts("qwen2_moe", tuple(blocks))


QWEN2_MOE = Outline(name="qwen2_moe", model_types=("qwen2_moe",), read=read)
