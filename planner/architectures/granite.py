"""Granite 3 (dense): Llama's layers, with constant factors that change neither weights nor FLOP."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return rms_norm_decoder(hyper, "granite", output_bias=hyper.attention_bias)


GRANITE = Architecture(
    name="granite",
    model_types=("granite",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
