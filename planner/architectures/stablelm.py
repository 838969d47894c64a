"""StableLM: layer norms, SwiGLU; the 12B has both blocks side by side behind one norm, and norms for every head."""

from __future__ import annotations

from collections.abc import Mapping

from planner.architectures.base import Architecture, Hyper, decoder, query_key_channels
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; ``use_qkv_bias`` leaves the attention's output without one, norms of heads have no bias."""
    return decoder(
        hyper,
        "stablelm",
        gated=True,
        num_norms=hyper.norms_per_layer or 2,
        norm_size=2,
        output_bias=False,
        query_key_norms=query_key_channels(hyper) if hyper.use_qk_norm else 0,
    )


def adapt(own: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what side by side means: one norm."""
    return {"norms_per_layer": 1 if own["use_parallel_residual"] else 2}


STABLELM = Architecture(
    name="stablelm",
    model_types=("stablelm",),
    build=build,
    aliases={"use_qkv_bias": "attention_bias", "qk_layernorm": "use_qk_norm", "layer_norm_eps": "norm_eps"},
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "use_qk_norm": False},
    own={"use_parallel_residual": False},
    adapt=adapt,
    choices=("use_qk_norm", "norms_per_layer"),
)
