"""Gemma 1 to 3: tied embeddings, heads of 256, GeGLU; norms behind each block from 2 on, on queries and keys in 3."""

from __future__ import annotations

from types import MappingProxyType

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model

ALIASES = MappingProxyType({"rms_norm_eps": "norm_eps", "hidden_activation": "hidden_act"})
DEFAULTS = MappingProxyType({"head_dim": 256, "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False})


def build_gemma(hyper: Hyper) -> Model:
    """Return the model with two norms a layer."""
    return rms_norm_decoder(hyper, "gemma", output_bias=hyper.attention_bias)


def build_gemma2(hyper: Hyper) -> Model:
    """Return the model with four norms a layer."""
    return rms_norm_decoder(hyper, "gemma2", num_norms=4, output_bias=hyper.attention_bias)


def build_gemma3(hyper: Hyper) -> Model:
    """Return the model with four norms a layer and two more for each head; what slides is priced in full."""
    return rms_norm_decoder(hyper, "gemma3_text", num_norms=4, query_key_norms=True, output_bias=hyper.attention_bias)


GEMMA = Architecture(
    name="gemma",
    model_types=("gemma",),
    build=build_gemma,
    aliases=ALIASES,
    defaults=DEFAULTS,
    sizes={
        "hidden_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 24_576,
        "vocab_size": 256_000,
        "max_position_embeddings": 8192,
    },
)
GEMMA2 = Architecture(
    name="gemma2",
    model_types=("gemma2",),
    build=build_gemma2,
    aliases=ALIASES,
    defaults=DEFAULTS,
    sizes={
        "hidden_size": 2304,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "intermediate_size": 9216,
        "vocab_size": 256_000,
        "max_position_embeddings": 8192,
    },
)
GEMMA3 = Architecture(
    name="gemma3_text",
    model_types=("gemma3_text", "gemma3"),
    build=build_gemma3,
    aliases=ALIASES,
    defaults=DEFAULTS,
    sizes={
        "hidden_size": 2304,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "intermediate_size": 9216,
        "vocab_size": 262_208,
        "max_position_embeddings": 131_072,
    },
)
