"""Command R and R7B: attention and feed-forward side by side behind one norm without bias, tied embeddings."""

from __future__ import annotations

from types import MappingProxyType

from planner.architectures.base import Architecture, Hyper, decoder, query_key_channels
from planner.domain.model import Model

ALIASES = MappingProxyType({"layer_norm_eps": "norm_eps"})
DEFAULTS = MappingProxyType({"tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False})


def build_cohere(hyper: Hyper) -> Model:
    """Return the model; norms on queries and keys (Command R+) have weights of their own for every head."""
    return decoder(
        hyper,
        "cohere",
        gated=True,
        num_norms=1,
        norm_size=1,
        output_bias=hyper.attention_bias,
        query_key_norms=query_key_channels(hyper) if hyper.use_qk_norm else 0,
    )


def build_cohere2(hyper: Hyper) -> Model:
    """Return the model; what slides is priced in full."""
    return decoder(hyper, "cohere2", gated=True, num_norms=1, norm_size=1, output_bias=hyper.attention_bias)


COHERE = Architecture(
    name="cohere",
    model_types=("cohere",),
    build=build_cohere,
    aliases=ALIASES,
    defaults={**DEFAULTS, "use_qk_norm": False},
    choices=("use_qk_norm",),
)
COHERE2 = Architecture(
    name="cohere2", model_types=("cohere2",), build=build_cohere2, aliases=ALIASES, defaults=DEFAULTS
)
