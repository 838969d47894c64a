"""Falcon: attention and plain feed-forward side by side, one key-value head in the 7B and groups from the 40B on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; side by side, both blocks share a norm unless the configuration tells of two."""
    num_norms = hyper.norms_per_layer or 2
    return decoder(hyper, "falcon", gated=False, num_norms=num_norms, norm_size=2, output_bias=hyper.attention_bias)


def adapt(own: Mapping[str, Any]) -> Mapping[str, object]:
    """Return what Falcon's own switches mean, as in transformers' ``FalconAttention`` and ``FalconDecoderLayer``.

    The number of key-value heads counts only in the new architecture or without multi-query attention; a layer whose
    blocks run one after the other has two norms.
    """
    groups = own["new_decoder_architecture"] or not own["multi_query"]
    side_by_side = own["new_decoder_architecture"] or own["parallel_attn"]
    given = own["num_ln_in_parallel_attn"] or (2 if own["new_decoder_architecture"] else 1)
    return {
        "num_key_value_heads": (own["num_kv_heads"] or own["n_head_kv"]) if groups else 1,
        "norms_per_layer": given if side_by_side else 2,
        "attention_bias": own["bias"],
        "mlp_bias": own["bias"],
    }


FALCON = Architecture(
    name="falcon",
    model_types=("falcon",),
    build=build,
    aliases={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "ffn_hidden_size": "intermediate_size",
        "activation": "hidden_act",
        "layer_norm_epsilon": "norm_eps",
    },
    defaults={"tie_word_embeddings": True, "max_position_embeddings": 2048},
    default_ffn_factor=4,
    own={
        "new_decoder_architecture": False,
        "multi_query": True,
        "parallel_attn": True,
        "bias": False,
        "num_kv_heads": None,
        "n_head_kv": None,
        "num_ln_in_parallel_attn": None,
    },
    adapt=adapt,
    choices=("norms_per_layer",),
)
