"""What a configuration says of a model, whether it can be planned or not: its layers, part by part, and its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from planner.domain.parts import Attention, Experts, FeedForward, LatentAttention, LinearAttention, StateSpace

Mixer: TypeAlias = Attention | LatentAttention | LinearAttention | StateSpace
"""What lets tokens see one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One layer: a mixer, a feed-forward block, or both, with their norms."""

    mixer: Mixer | None = None
    cross: Attention | None = None
    """Attention to the encoder, in a decoder that has one."""
    feed_forward: FeedForward | Experts | None = None
    norm_parameters: int = 0
    """[-] of all norms of the layer together."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters."""
        parts = (self.mixer, self.cross, self.feed_forward)
        return sum(part.parameters for part in parts if part) + self.norm_parameters

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        parts = (self.mixer, self.cross, self.feed_forward)
        return sum(part.active_parameters for part in parts if part) + self.norm_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a vision transformer takes."""

    size: int
    """[pixels] of a side."""
    patch: int
    """[pixels] of a side of a patch."""
    num_channels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The settled numbers of a model of any family that is known."""

    name: str
    model_type: str
    """Of the Hugging Face configuration, that of the language model where several are nested."""
    hidden_size: int
    blocks: tuple[Block, ...]
    """Every layer in order; those of the decoder where there is an encoder too."""
    encoder: tuple[Block, ...] = ()
    """Layers of the encoder that a decoder attends to."""
    num_mtp_layers: int = 0
    """Layers that predict tokens further on (multi-token prediction), which are in no count here."""
    vocab_size: int = 0
    """Rows of the vocabulary; 0: none."""
    max_position_embeddings: int = 0
    """[tokens] of the longest sample; 0: nothing bounds it."""
    tie_word_embeddings: bool = False
    image: Image | None = None
    planned: bool = False
    """Whether models of the family can be planned."""
    embedding_parameters: int
    """[-] of the table that tokens are looked up in; it counts once where the head uses it too."""
    end_parameters: int
    """[-] outside of layers and that table: positions, norms at both ends, the head's own weights."""

    @property
    def num_hidden_layers(self) -> int:
        """Layers, those of an encoder too."""
        return len(self.blocks) + len(self.encoder)

    @property
    def attention(self) -> Attention | LatentAttention | None:
        """The first attention of the model, None where it has none."""
        return next((b.mixer for b in self.blocks if isinstance(b.mixer, (Attention, LatentAttention))), None)

    @property
    def experts(self) -> Experts | None:
        """The first mixture of experts of the model, None where it has none."""
        return next((block.feed_forward for block in self.blocks if isinstance(block.feed_forward, Experts)), None)

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """Indices of the layers with experts, counted from 0."""
        return tuple(i for i, block in enumerate(self.blocks) if isinstance(block.feed_forward, Experts))

    @property
    def num_attention_heads(self) -> int:
        """Heads of the attention; 0: there is none."""
        return self.attention.num_heads if self.attention else 0

    @property
    def num_key_value_heads(self) -> int:
        """Key-value heads of the attention; one for each head where all come from a latent."""
        found = self.attention
        return found.num_kv_heads if isinstance(found, Attention) else self.num_attention_heads

    @property
    def intermediate_size(self) -> int:
        """Width of the first feed-forward block that all tokens pass; 0: there is none."""
        widths = (block.feed_forward.size for block in self.blocks if isinstance(block.feed_forward, FeedForward))
        return next(widths, 0)

    @property
    def obstacles(self) -> tuple[str, ...]:
        """What of the model cannot be planned yet; empty: it can be."""
        if self.planned:
            return ()
        mixers = [block.mixer for block in self.blocks]
        found = (
            ("mixtures of experts", self.experts is not None),
            ("latent attention", any(isinstance(mixer, LatentAttention) for mixer in mixers)),
            ("linear attention", any(isinstance(mixer, LinearAttention) for mixer in mixers)),
            ("state-space layers", any(isinstance(mixer, StateSpace) for mixer in mixers)),
            ("layers that differ", len(set(self.blocks)) > 1),
            ("encoders beside a decoder", bool(self.encoder)),
            ("models of images", self.image is not None),
        )
        return tuple(what for what, there in found if there) or (f"models of family {self.model_type}",)

    @property
    def parameters(self) -> int:
        """[-] number of parameters."""
        return self._of_blocks([block.parameters for block in (*self.encoder, *self.blocks)])

    @property
    def active_parameters(self) -> int:
        """[-] parameters but those of the experts that a token does not choose; the embedding's table is counted."""
        return self._of_blocks([block.active_parameters for block in (*self.encoder, *self.blocks)])

    def _of_blocks(self, counts: Sequence[int]) -> int:
        return sum(counts) + self.embedding_parameters + self.end_parameters
