"""Seed-OSS: Llama's layers with heads of 128 and biases on queries, keys and values."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; ``attention_bias`` means queries, keys and values."""
    return rms_norm_decoder(hyper, "seed_oss", output_bias=False)


SEED_OSS = Architecture(
    name="seed_oss",
    model_types=("seed_oss",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps", "residual_dropout": "hidden_dropout"},
    defaults={"head_dim": 128, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": False},
)
