"""ERNIE 4.5 (dense): Llama's layers with heads of 128; one switch for all biases."""

from __future__ import annotations

from collections.abc import Mapping

from planner.architectures.base import Architecture, Hyper, rms_norm_decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return rms_norm_decoder(hyper, "ernie4_5", output_bias=hyper.attention_bias)


def adapt(own: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what ``use_bias`` means: all products of a layer."""
    return {"attention_bias": own["use_bias"], "mlp_bias": own["use_bias"]}


ERNIE4_5 = Architecture(
    name="ernie4_5",
    model_types=("ernie4_5",),
    build=build,
    aliases={"rms_norm_eps": "norm_eps"},
    defaults={"head_dim": 128, "tie_word_embeddings": True},
    own={"use_bias": False},
    adapt=adapt,
)
