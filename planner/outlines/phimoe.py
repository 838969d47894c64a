"""Phi-3.5-MoE: layer norms, experts in place of every feed-forward block, a bias in the head by flag."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; an expert is as wide as ``intermediate_size``, a norm has a weight and a bias."""
    bias = fields.flag("attention_bias", default=False)
    block = Block(
        mixer=fields.attention(bias=bias, output_bias=bias),
        feed_forward=fields.experts(fields.count("intermediate_size")),
        norm_parameters=4 * fields.count("hidden_size"),
    )
    head_bias = fields.flag("lm_head_bias", default=False)
    return fields.facts("phimoe", (block,) * fields.num_layers(), norm_size=2, head_bias=head_bias)


PHI_MOE = Outline(name="phimoe", model_types=("phimoe",), read=read)
