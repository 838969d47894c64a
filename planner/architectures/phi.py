"""Phi-1, 1.5 and 2: attention and plain feed-forward side by side behind one norm, biases even in the head."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, decoder
from planner.domain.model import Model


def build(hyper: Hyper) -> Model:
    """Return the model; norms on queries and keys, where there are any, have the weights and biases of one head."""
    return decoder(
        hyper,
        "phi",
        gated=False,
        num_norms=1,
        norm_size=2,
        output_bias=hyper.attention_bias,
        query_key_norms=4 * hyper.head_dim if hyper.use_qk_norm else 0,
        head_bias=True,
    )


PHI = Architecture(
    name="phi",
    model_types=("phi",),
    build=build,
    aliases={"layer_norm_eps": "norm_eps", "resid_pdrop": "hidden_dropout", "qk_layernorm": "use_qk_norm"},
    defaults={"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True, "use_qk_norm": False},
    choices=("use_qk_norm",),
)
