"""Gemma and Gemma 2: tied embeddings, heads of 256, GeGLU; Gemma 2 has norms behind each block too."""

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


GEMMA = Architecture(name="gemma", model_types=("gemma",), build=build_gemma, aliases=ALIASES, defaults=DEFAULTS)
GEMMA2 = Architecture(name="gemma2", model_types=("gemma2",), build=build_gemma2, aliases=ALIASES, defaults=DEFAULTS)
