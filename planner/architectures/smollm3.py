"""SmolLM3: Llama's layers, every fourth of which has no rotary positions; tied embeddings."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; rotary positions have no weights, and are priced in every layer."""
    return rms_norm_decoder(hyper, "smollm3", output_bias=hyper.attention_bias)


SMOLLM3 = Architecture(
    name="smollm3",
    model_types=("smollm3",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False},
)
