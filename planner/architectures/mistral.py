"""Mistral: Llama's layers without any bias; the early ones limit attention to a sliding window."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return rms_norm_decoder(hyper, "mistral", output_bias=hyper.attention_bias)


MISTRAL = Architecture(
    name="mistral",
    model_types=("mistral", "ministral3", "mistral3"),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
    sizes={
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14_336,
        "vocab_size": 32_000,
        "max_position_embeddings": 131_072,
    },
)
