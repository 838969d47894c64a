"""Olmo: Llama's layers with norms that have neither weights nor biases."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return decoder(hyper, "olmo", gated=True, num_norms=2, norm_size=0, output_bias=hyper.attention_bias)


OLMO = Architecture(
    name="olmo",
    model_types=("olmo",),
    build=build,
    aliases={},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
