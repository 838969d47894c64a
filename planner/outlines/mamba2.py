"""Mamba-2: state-space layers and nothing else."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.domain.parts import StateSpace
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; nothing bounds the sequence."""
    hidden = fields.count("hidden_size")
    mixer = StateSpace(
        hidden=hidden,
        num_heads=fields.count("num_heads"),
        head_dim=fields.count("head_dim"),
        num_groups=fields.count("n_groups"),
        state_size=fields.count("state_size"),
        conv_kernel=fields.count("conv_kernel", default=4),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    block = Block(mixer=mixer, norm_parameters=hidden)
    vocabulary, tied = fields.count("vocab_size"), fields.flag("tie_word_embeddings", default=False)
    return ModelFacts(
        name=fields.name,
        model_type="mamba2",
        hidden_size=hidden,
        blocks=(block,) * fields.num_layers(),
        vocab_size=vocabulary,
        tie_word_embeddings=tied,
        embedding_parameters=vocabulary * hidden,
        end_parameters=hidden + (0 if tied else vocabulary * hidden),
    )


MAMBA2 = Outline(name="mamba2", model_types=("mamba2",), read=read)
