"""T5: an encoder, and a decoder that attends to it; relative positions, no biases."""

from __future__ import annotations

from dataclasses import replace

from planner.domain.facts import Block, ModelFacts
from planner.domain.parts import Attention, FeedForward
from planner.outlines.base import LAYERS_MAX, Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; the first layer of each side holds the table of relative positions for all of its side."""
    hidden, heads = fields.count("d_model", "hidden_size"), fields.count("num_heads", "num_attention_heads")
    num_encoder = fields.count("num_layers", "num_hidden_layers", most=LAYERS_MAX)
    num_decoder = fields.count("num_decoder_layers", default=num_encoder, most=LAYERS_MAX)
    attention = Attention(hidden=hidden, num_heads=heads, num_kv_heads=heads, head_dim=fields.count("d_kv"))
    gated = fields.text("feed_forward_proj", "relu").startswith("gated")
    feed_forward = FeedForward(hidden=hidden, size=fields.count("d_ff"), gated=gated)
    encoder = Block(mixer=attention, feed_forward=feed_forward, norm_parameters=2 * hidden)
    decoder = replace(encoder, cross=attention, norm_parameters=3 * hidden)
    vocabulary, tied = fields.count("vocab_size"), fields.flag("tie_word_embeddings", default=True)
    positions = 2 * heads * fields.count("relative_attention_num_buckets", default=32)
    return ModelFacts(
        name=fields.name,
        model_type="t5",
        hidden_size=hidden,
        blocks=(decoder,) * num_decoder,
        encoder=(encoder,) * num_encoder,
        vocab_size=vocabulary,
        max_position_embeddings=fields.count("n_positions", default=0, least=0),
        tie_word_embeddings=tied,
        embedding_parameters=vocabulary * hidden,
        end_parameters=2 * hidden + positions + (0 if tied else vocabulary * hidden),
    )


T5 = Outline(
    name="t5",
    model_types=(
        "t5",
        "mt5",
    ),
    read=read,
)
