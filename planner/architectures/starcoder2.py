"""StarCoder2: layer norms, rotary positions, grouped queries, plain feed-forward, biases everywhere but in the head."""

from __future__ import annotations

from collections.abc import Mapping

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return decoder(hyper, "starcoder2", gated=False, num_norms=2, norm_size=2, output_bias=hyper.attention_bias)


def adapt(own: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what ``use_bias`` means: all products of a layer."""
    return {"attention_bias": own["use_bias"], "mlp_bias": own["use_bias"]}


STARCODER2 = Architecture(
    name="starcoder2",
    model_types=("starcoder2",),
    build=build,
    aliases={"norm_epsilon": "norm_eps", "residual_dropout": "hidden_dropout"},
    defaults={"tie_word_embeddings": True},
    own={"use_bias": True},
    adapt=adapt,
)
