"""Llama 1 to 3: RMS norms, rotary positions, SwiGLU, grouped queries from Llama 2 70B on; biases by flag only."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; ``attention_bias`` means all four products of the attention."""
    return rms_norm_decoder(hyper, "llama", output_bias=hyper.attention_bias)


LLAMA = Architecture(
    name="llama",
    model_types=("llama",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
    sizes={
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "intermediate_size": 11_008,
        "vocab_size": 32_000,
        "max_position_embeddings": 2048,
    },
)
