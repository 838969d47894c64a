"""EXAONE 4: Llama's blocks with their norms behind them, and norms on queries and keys."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; what slides is priced in full."""
    return rms_norm_decoder(hyper, "exaone4", query_key_norms=True, output_bias=False)


EXAONE4 = Architecture(
    name="exaone4",
    model_types=("exaone4",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
