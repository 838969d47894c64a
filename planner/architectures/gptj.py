"""GPT-J: attention without and plain feed-forward with biases, side by side behind one norm; a bias in the head."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model."""
    return decoder(
        hyper, "gptj", gated=False, num_norms=1, norm_size=2, output_bias=hyper.attention_bias, head_bias=True
    )


GPTJ = Architecture(
    name="gptj",
    model_types=("gptj",),
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
    defaults={"tie_word_embeddings": False, "attention_bias": False, "mlp_bias": True},
    default_ffn_factor=4,
)
