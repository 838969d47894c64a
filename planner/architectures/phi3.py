"""Phi-3 and Phi-4: Llama's layers with fused matrices, without any bias."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; one matrix for queries, keys and values and one for gate and up have the weights of all."""
    return rms_norm_decoder(hyper, "phi3", output_bias=False)


PHI3 = Architecture(
    name="phi3",
    model_types=("phi3",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps", "resid_pdrop": "hidden_dropout"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
