"""Qwen3 (dense): Llama's layers, norms on queries and keys, and a head size that is independent of the hidden size."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return rms_norm_decoder(hyper, "qwen3", query_key_norms=True, output_bias=hyper.attention_bias)


QWEN3 = Architecture(
    name="qwen3",
    model_types=("qwen3", "qwen3_vl_text"),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"head_dim": 128, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
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
