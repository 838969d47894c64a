"""GPT-NeoX and Pythia: layer norms, rotary positions, plain feed-forward, biases everywhere but in the untied head."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, assemble, transformer_layer
from planner.domain.model import Model
from planner.layers import Embedding, Head


def build(hyper: Hyper) -> Model:
    """Return the model; attention and feed-forward may run side by side, which changes neither weights nor FLOP."""
    hidden = hyper.hidden_size
    return assemble(
        hyper,
        "gpt_neox",
        Embedding(hidden=hidden, vocabulary=hyper.vocabulary),
        transformer_layer(hyper, gated=False, norm_parameters=4 * hidden, output_bias=hyper.attention_bias),
        Head(hidden=hidden, vocabulary=hyper.vocabulary, tied=hyper.tie_word_embeddings, norm_parameters=2 * hidden),
    )


GPT_NEOX = Architecture(
    name="gpt_neox",
    model_types=("gpt_neox",),
    build=build,
    aliases={"layer_norm_eps": "norm_eps", "rotary_emb_base": "rope_theta"},
    defaults={"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
)
