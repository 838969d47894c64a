"""GLM-4 (dense): biases on queries, keys and values, and norms behind each block too from the 0414 on (glm4)."""

from __future__ import annotations

from types import MappingProxyType

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model

ALIASES = MappingProxyType({"rms_norm_eps": "norm_eps"})
DEFAULTS = MappingProxyType({"head_dim": 128, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": False})


def build_glm(hyper: Hyper) -> Model:
    """Return the model; ``attention_bias`` means queries, keys and values."""
    return rms_norm_decoder(hyper, "glm", output_bias=False)


def build_glm4(hyper: Hyper) -> Model:
    """Return the model with four norms a layer."""
    return rms_norm_decoder(hyper, "glm4", num_norms=4, output_bias=False)


GLM = Architecture(name="glm", model_types=("glm",), build=build_glm, aliases=ALIASES, defaults=DEFAULTS)
GLM4 = Architecture(name="glm4", model_types=("glm4",), build=build_glm4, aliases=ALIASES, defaults=DEFAULTS)
