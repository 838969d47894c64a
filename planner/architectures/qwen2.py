"""Qwen2 and Qwen2.5: Llama's layers with a bias on queries, keys and values, and none on the attention's output."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; ``attention_bias`` (true unless said otherwise) means queries, keys and values."""
    return rms_norm_decoder(hyper, "qwen2", output_bias=False)


QWEN2 = Architecture(
    name="qwen2",
    model_types=("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": False},
    sizes={
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "intermediate_size": 22_016,
        "vocab_size": 151_936,
        "max_position_embeddings": 32_768,
    },
)
