"""Qwen3-Next: three layers of linear attention to one of gated attention, experts and a shared one behind a gate."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.facts import Block, Mixer, ModelFacts
from planner.domain.parts import LinearAttention
from planner.outlines.base import Fields, Outline

KINDS = ("linear_attention", "full_attention")


def read(fields: Fields) -> ModelFacts:
    """Return the facts; without ``layer_types``, every fourth layer has full attention."""
    number, norms = fields.num_layers(), 2 * fields.count("hidden_size")
    interval = fields.count("full_attention_interval", default=4)
    kinds = fields.words("layer_types", KINDS, number) or tuple(
        KINDS[0] if (i + 1) % interval else KINDS[1] for i in range(number)
    )
    step = fields.count("decoder_sparse_step", default=1)
    only_dense = fields.indices("mlp_only_layers", number) or frozenset()
    bias = fields.flag("attention_bias", default=False)
    mixers: dict[str, Mixer] = {
        "full_attention": replace(fields.attention(bias=bias, output_bias=bias, head_dim=256, extra=2), gated=True),
        "linear_attention": LinearAttention(
            hidden=fields.count("hidden_size"),
            num_key_heads=fields.count("linear_num_key_heads"),
            num_value_heads=fields.count("linear_num_value_heads"),
            key_head_dim=fields.count("linear_key_head_dim"),
            value_head_dim=fields.count("linear_value_head_dim"),
            conv_kernel=fields.count("linear_conv_kernel_dim", default=4),
        ),
    }
    experts = fields.experts(
        fields.count("moe_intermediate_size"),
        num_shared=1,
        shared_size=fields.count("shared_expert_intermediate_size"),
        shared_gate=True,
    )
    dense = fields.dense(fields.count("intermediate_size"))
    blocks = (
        Block(
            mixer=mixers[kind],
            feed_forward=dense if i in only_dense or (i + 1) % step else experts,
            norm_parameters=norms,
        )
        for i, kind in enumerate(kinds)
    )
    return fields.facts("qwen3_next", tuple(blocks))


QWEN3_NEXT = Outline(name="qwen3_next", model_types=("qwen3_next",), read=read)
