"""Llama 4: one expert of many and a shared one for each token, in every layer (Scout) or every other (Maverick)."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; norms on queries and keys have no weights."""
    number, norms, size = fields.num_layers(), 2 * fields.count("hidden_size"), fields.count("intermediate_size")
    step = fields.count("interleave_moe_layer_step", default=1)
    sparse_layers = fields.indices("moe_layers", number)
    if sparse_layers is None:
        sparse_layers = frozenset(range(step - 1, number, step))
    bias = fields.flag("attention_bias", default=False)
    attention = fields.attention(bias=bias, output_bias=bias)
    dense = Block(
        mixer=attention, feed_forward=fields.dense(fields.count("intermediate_size_mlp")), norm_parameters=norms
    )
    experts = fields.experts(size, num_shared=1, shared_size=size)
    sparse = Block(mixer=attention, feed_forward=experts, norm_parameters=norms)
    return fields.facts("llama4_text", tuple(sparse if i in sparse_layers else dense for i in range(number)))


LLAMA4 = Outline(name="llama4_text", model_types=("llama4_text", "llama4"), read=read)
