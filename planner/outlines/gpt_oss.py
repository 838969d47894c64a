"""gpt-oss: biases everywhere, sinks, alternating windows, experts in every layer."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; every head has a sink, an expert is as wide as ``intermediate_size``."""
    bias = fields.flag("attention_bias", default=True)
    plain = fields.attention(bias=bias, output_bias=bias, head_dim=64)
    block = Block(
        mixer=replace(plain, extra_parameters=plain.num_heads),
        feed_forward=fields.experts(fields.count("intermediate_size"), bias=True, router_bias=True),
        norm_parameters=2 * fields.count("hidden_size"),
    )
    return fields.facts("gpt_oss", (block,) * fields.num_layers())


GPT_OSS = Outline(name="gpt_oss", model_types=("gpt_oss",), read=read)
