"""What a model family is: its hyper-parameters under one set of names, and how they become a chain of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from planner.domain.model import Model
from planner.layers import Embedding, Head, TransformerLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """The hyper-parameters of every family, under the names of Hugging Face configurations, all settled."""

    name: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    """Width of the feed-forward block."""
    vocab_size: int
    vocab_size_padded: int | None = None
    """Rows that the framework really holds (Megatron pads to a multiple of 128 tp); None: not padded."""
    word_embed_proj_dim: int | None = None
    """Channels of the embedding's rows where they are projected to the hidden size; None: they have the hidden size."""
    max_position_embeddings: int
    """[tokens]"""
    type_vocab_size: int = 0
    """Token types (BERT's segments)."""
    tie_word_embeddings: bool
    attention_bias: bool
    mlp_bias: bool
    use_qk_norm: bool | None = None
    """Whether queries and keys pass norms, in families that leave the choice; None: the family's own."""
    norms_per_layer: int | None = None
    """Norms of the hidden size in each layer, in families that leave the choice; None: the family's own."""
    final_norm: bool | None = None
    """Whether a norm follows the last layer, in families that leave the choice; None: the family's own."""
    hidden_dropout: float = 0.0
    """[-] rate behind each block."""
    attention_dropout: float = 0.0
    """[-] rate on the attention scores."""
    sliding_window: int | None = None
    """[tokens] that each query sees where the family limits them; None: all. Attention is counted in full."""
    hidden_act: str | None = None
    """The activation function as written; None: the family's own."""
    norm_eps: float | None = None
    """As written; None: the family's own."""
    rope_theta: float | None = None
    """Base of the rotary positions as written; None: the family's own."""
    rope_scaling: tuple[tuple[str, object], ...] | None = None
    """How rotary positions are stretched, as written; None: not stretched."""

    @property
    def vocabulary(self) -> int:
        """Rows of the embedding, padding included."""
        return self.vocab_size_padded or self.vocab_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model family: whose configurations it reads, what it takes for granted, how it is built."""

    name: str
    model_types: tuple[str, ...]
    """Values of ``model_type`` in Hugging Face configurations."""
    build: Callable[[Hyper], Model]
    aliases: Mapping[str, str]
    """The family's own names of hyper-parameters -> the common ones."""
    defaults: Mapping[str, object]
    """What holds where a configuration says nothing (the defaults of the family's Hugging Face class)."""
    default_ffn_factor: int | None = None
    """Feed-forward width over hidden size where none is given; None: it must be given."""
    own: Mapping[str, bool | int | None] = field(default_factory=dict)
    """Hyper-parameters that only this family has, and what holds where a configuration says nothing."""
    adapt: Callable[[Mapping[str, Any]], Mapping[str, object]] | None = None
    """The values of all of `own` -> what they mean under the common names, which go before them where written too."""
    choices: tuple[str, ...] = ()
    """Which of `word_embed_proj_dim`, `use_qk_norm`, `norms_per_layer` and `final_norm` the family leaves open."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes that the family's Hugging Face class takes where a configuration nested in another leaves them out."""


def spec_of(hyper: Hyper) -> tuple[tuple[str, object], ...]:
    """Return everything that rebuilds `hyper`, its name apart; what is None is left out."""
    pairs = ((field.name, getattr(hyper, field.name)) for field in fields(hyper) if field.name != "name")
    return tuple((key, value) for key, value in pairs if value is not None)


def assemble(hyper: Hyper, family: str, embedding: Embedding, body: TransformerLayer, head: Head) -> Model:
    """Return the chain of `num_hidden_layers` bodies between both ends."""
    return Model(
        name=hyper.name,
        family=family,
        embedding=embedding,
        body=body,
        head=head,
        num_layers=hyper.num_hidden_layers,
        hidden=hyper.hidden_size,
        max_sequence=hyper.max_position_embeddings,
        tied=hyper.tie_word_embeddings,
        spec=spec_of(hyper),
    )


def transformer_layer(
    hyper: Hyper, *, gated: bool, norm_parameters: int, output_bias: bool, causal: bool = True
) -> TransformerLayer:
    """Return the body layer; what families differ in must be said."""
    return TransformerLayer(
        hidden=hyper.hidden_size,
        num_heads=hyper.num_attention_heads,
        num_kv_heads=hyper.num_key_value_heads,
        head_dim=hyper.head_dim,
        ffn=hyper.intermediate_size,
        gated=gated,
        qkv_bias=hyper.attention_bias,
        output_bias=output_bias,
        mlp_bias=hyper.mlp_bias,
        norm_parameters=norm_parameters,
        causal=causal,
        dropout=hyper.hidden_dropout > 0,
    )


def decoder(
    hyper: Hyper,
    family: str,
    *,
    gated: bool,
    num_norms: int,
    norm_size: int,
    output_bias: bool,
    query_key_norms: int = 0,
    embedding_norm: bool = False,
    head_bias: bool = False,
) -> Model:
    """Return the decoder with computed positions.

    Args:
        hyper: settled hyper-parameters.
        family: name of the family.
        gated: whether the feed-forward block has three matrices.
        num_norms: norms of the hidden size in each layer.
        norm_size: [-] parameters per channel of a norm: 1 a weight, 2 a bias too, 0 neither.
        output_bias: whether the attention's last product has a bias.
        query_key_norms: [-] parameters of the norms on queries and keys of a layer together.
        embedding_norm: whether a norm follows the embedding.
        head_bias: whether the projection to the vocabulary has a bias.
    """
    hidden, norm = hyper.hidden_size, norm_size * hyper.hidden_size
    return assemble(
        hyper,
        family,
        Embedding(hidden=hidden, vocabulary=hyper.vocabulary, norm_parameters=norm if embedding_norm else 0),
        transformer_layer(
            hyper, gated=gated, norm_parameters=num_norms * norm + query_key_norms, output_bias=output_bias
        ),
        Head(
            hidden=hidden,
            vocabulary=hyper.vocabulary,
            tied=hyper.tie_word_embeddings,
            bias=head_bias,
            norm_parameters=norm,
        ),
    )


def rms_norm_decoder(
    hyper: Hyper, family: str, *, num_norms: int = 2, query_key_norms: bool = False, output_bias: bool
) -> Model:
    """Return the decoder of the Llama kind: computed positions, gated feed-forward, RMS norms of `hidden` weights.

    Args:
        hyper: settled hyper-parameters.
        family: name of the family.
        num_norms: norms of the hidden size in each layer.
        query_key_norms: whether queries and keys pass a norm of `head_dim` weights each.
        output_bias: whether the attention's last product has a bias.
    """
    return decoder(
        hyper,
        family,
        gated=True,
        num_norms=num_norms,
        norm_size=1,
        output_bias=output_bias,
        query_key_norms=2 * hyper.head_dim if query_key_norms else 0,
    )


def query_key_channels(hyper: Hyper) -> int:
    """Return the width of all queries and all keys, [-] weights of norms over the full width of both."""
    return hyper.head_dim * (hyper.num_attention_heads + hyper.num_key_value_heads)
