"""Olmo 2 and 3: Llama's blocks with their norms behind them, and norms over all queries and all keys."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder, query_key_channels
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; what slides in Olmo 3 is priced in full."""
    return decoder(
        hyper,
        "olmo2",
        gated=True,
        num_norms=2,
        norm_size=1,
        output_bias=hyper.attention_bias,
        query_key_norms=query_key_channels(hyper),
    )


OLMO2 = Architecture(
    name="olmo2",
    model_types=("olmo2", "olmo3"),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False},
)
