"""BLOOM: layer norms, one behind the embedding too, ALiBi, plain feed-forward of four times the hidden size."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; ALiBi adds a constant to the scores, which has no weights."""
    return decoder(
        hyper,
        "bloom",
        gated=False,
        num_norms=2,
        norm_size=2,
        output_bias=hyper.attention_bias,
        embedding_norm=True,
    )


BLOOM = Architecture(
    name="bloom",
    model_types=("bloom",),
    build=build,
    aliases={
        "n_embed": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "seq_length": "max_position_embeddings",
        "layer_norm_epsilon": "norm_eps",
    },
    # Nothing in the model bounds the sequence: 2,048 tokens are what it was trained on (Le Scao et al. 2022).
    defaults={
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": True,
        "max_position_embeddings": 2048,
    },
    default_ffn_factor=4,
)
