"""Nemotron-4 and Minitron: layer norms, squared ReLU in a plain feed-forward block, no other biases."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return decoder(hyper, "nemotron", gated=False, num_norms=2, norm_size=2, output_bias=hyper.attention_bias)


NEMOTRON = Architecture(
    name="nemotron",
    model_types=("nemotron",),
    build=build,
    aliases={},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
