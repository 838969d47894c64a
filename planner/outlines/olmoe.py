"""OLMoE: experts in place of every feed-forward block, norms over all queries and all keys."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; an expert is as wide as ``intermediate_size``."""
    bias = fields.flag("attention_bias", default=False)
    plain = fields.attention(bias=bias, output_bias=bias)
    norms = plain.head_dim * (plain.num_heads + plain.num_kv_heads)
    block = Block(
        mixer=replace(plain, extra_parameters=norms),
        feed_forward=fields.experts(fields.count("intermediate_size")),
        norm_parameters=2 * fields.count("hidden_size"),
    )
    return fields.facts("olmoe", (block,) * fields.num_layers())


OLMOE = Outline(name="olmoe", model_types=("olmoe",), read=read)
