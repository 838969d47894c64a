"""Qwen3-MoE: Qwen3's layers with experts, none of them shared."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; layer i has experts where ``decoder_sparse_step`` divides i + 1, unless listed as dense."""
    number, norms = fields.num_layers(), 2 * fields.count("hidden_size")
    step = fields.count("decoder_sparse_step", default=1)
    only_dense = fields.indices("mlp_only_layers", number) or frozenset()
    bias = fields.flag("attention_bias", default=False)
    attention = fields.attention(bias=bias, output_bias=bias, extra=2)
    experts = fields.experts(fields.count("moe_intermediate_size"))
    sparse = Block(mixer=attention, feed_forward=experts, norm_parameters=norms)
    dense = Block(mixer=attention, feed_forward=fields.dense(fields.count("intermediate_size")), norm_parameters=norms)
    blocks = (dense if i in only_dense or (i + 1) % step else sparse for i in range(number))
    return fields.facts("qwen3_moe", tuple(blocks))


QWEN3_MOE = Outline(
    name="qwen3_moe",
    model_types=(
        "qwen3_moe",
        "qwen3_vl_moe_text",
    ),
    read=read,
)
