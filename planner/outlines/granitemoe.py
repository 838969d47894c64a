"""Granite 3 with experts in place of every feed-forward block."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; an expert is as wide as ``intermediate_size``."""
    bias = fields.flag("attention_bias", default=False)
    block = Block(
        mixer=fields.attention(bias=bias, output_bias=bias),
        feed_forward=fields.experts(fields.count("intermediate_size")),
        norm_parameters=2 * fields.count("hidden_size"),
    )
    return fields.facts("granitemoe", (block,) * fields.num_layers())


GRANITE_MOE = Outline(name="granitemoe", model_types=("granitemoe",), read=read)
