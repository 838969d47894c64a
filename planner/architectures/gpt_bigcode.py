"""StarCoder and SantaCoder: GPT-2's layers with one key-value head for all heads."""

from __future__ import annotations

from collections.abc import Mapping

from planner.architectures.base import Architecture, Hyper, assemble, transformer_layer
from planner.domain.model import Model
from planner.layers import Embedding, Head


def build(hyper: Hyper) -> Model:
    """Return the model; a layer norm has a weight and a bias for each hidden channel."""
    hidden = hyper.hidden_size
    return assemble(
        hyper,
        "gpt_bigcode",
        Embedding(hidden=hidden, vocabulary=hyper.vocabulary, num_positions=hyper.max_position_embeddings),
        transformer_layer(hyper, gated=False, norm_parameters=4 * hidden, output_bias=hyper.attention_bias),
        Head(hidden=hidden, vocabulary=hyper.vocabulary, tied=hyper.tie_word_embeddings, norm_parameters=2 * hidden),
    )


def adapt(own: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what ``multi_query`` means: one key-value head, or one for each head."""
    return {"num_key_value_heads": 1 if own["multi_query"] else None}


GPT_BIGCODE = Architecture(
    name="gpt_bigcode",
    model_types=("gpt_bigcode",),
    build=build,
    aliases={
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_positions": "max_position_embeddings",
        "n_inner": "intermediate_size",
        "resid_pdrop": "hidden_dropout",
        "attn_pdrop": "attention_dropout",
        "activation_function": "hidden_act",
        "layer_norm_epsilon": "norm_eps",
    },
    defaults={
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": True,
        "hidden_dropout": 0.1,
        "attention_dropout": 0.1,
    },
    default_ffn_factor=4,
    own={"multi_query": True},
    adapt=adapt,
)
