"""Vision transformers: an encoder of the patches of an image."""

from __future__ import annotations

from planner.domain.facts import Block, Image, ModelFacts
from planner.domain.parts import Attention, FeedForward
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts without pooler and classifier, which depend on the task."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    size, patch = fields.count("image_size", default=224), fields.count("patch_size", default=16)
    channels = fields.count("num_channels", default=3)
    if hidden % heads:
        fields.refuse("num_attention_heads", f"{heads} does not divide hidden_size {hidden}")
    if size % patch:
        fields.refuse("patch_size", f"{patch} does not divide image_size {size}")
    attention = Attention(
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=max(1, hidden // heads),
        qkv_bias=fields.flag("qkv_bias", default=True),
        output_bias=True,
    )
    feed_forward = FeedForward(hidden=hidden, size=fields.count("intermediate_size"), gated=False, bias=True)
    block = Block(mixer=attention, feed_forward=feed_forward, norm_parameters=4 * hidden)
    positions = (size // patch) ** 2 + 1
    return ModelFacts(
        name=fields.name,
        model_type="vit",
        hidden_size=hidden,
        blocks=(block,) * fields.num_layers(),
        max_position_embeddings=positions,
        image=Image(size=size, patch=patch, num_channels=channels),
        embedding_parameters=hidden * (channels * patch**2 + 1),
        end_parameters=(positions + 1) * hidden + 2 * hidden,
    )


VIT = Outline(name="vit", model_types=("vit",), read=read)
