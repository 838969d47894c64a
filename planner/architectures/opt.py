"""OPT: GPT-3's layers with learned positions; the 350M projects narrower rows and has its norms behind the blocks."""

from __future__ import annotations

from collections.abc import Mapping

from planner.architectures.base import Architecture, Hyper, assemble, transformer_layer
from planner.domain.model import Model
from planner.layers import Embedding, Head

SPARE_POSITIONS = 2
"""Rows of the table of positions that padding takes (transformers' ``OPTLearnedPositionalEmbedding``)."""


def build(hyper: Hyper) -> Model:
    """Return the model; a norm behind each block or before it has the same weights, a last one follows the latter."""
    hidden, rows = hyper.hidden_size, hyper.word_embed_proj_dim
    row_size = rows if rows != hidden else None
    return assemble(
        hyper,
        "opt",
        Embedding(
            hidden=hidden,
            vocabulary=hyper.vocabulary,
            num_positions=hyper.max_position_embeddings,
            num_spare_positions=SPARE_POSITIONS,
            row_size=row_size,
        ),
        transformer_layer(hyper, gated=False, norm_parameters=4 * hidden, output_bias=hyper.attention_bias),
        Head(
            hidden=hidden,
            vocabulary=hyper.vocabulary,
            tied=hyper.tie_word_embeddings,
            norm_parameters=2 * hidden if hyper.final_norm else 0,
            row_size=row_size,
        ),
    )


def adapt(own: Mapping[str, bool]) -> Mapping[str, object]:
    """Return what OPT's own switches mean."""
    return {
        "attention_bias": own["enable_bias"],
        "mlp_bias": own["enable_bias"],
        "final_norm": own["do_layer_norm_before"] and not own["_remove_final_layer_norm"],
    }


OPT = Architecture(
    name="opt",
    model_types=("opt",),
    build=build,
    aliases={"ffn_dim": "intermediate_size", "dropout": "hidden_dropout", "activation_function": "hidden_act"},
    defaults={"tie_word_embeddings": True, "hidden_dropout": 0.1},
    own={"enable_bias": True, "do_layer_norm_before": True, "_remove_final_layer_norm": False},
    adapt=adapt,
    choices=("word_embed_proj_dim", "final_norm"),
    sizes={
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 50_272,
        "max_position_embeddings": 2048,
    },
)
