"""Mixtral: Mistral's layers with experts in place of every feed-forward block."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; an expert is as wide as ``intermediate_size``."""
    block = Block(
        mixer=fields.attention(),
        feed_forward=fields.experts(fields.count("intermediate_size")),
        norm_parameters=2 * fields.count("hidden_size"),
    )
    return fields.facts("mixtral", (block,) * fields.num_layers())


MIXTRAL = Outline(name="mixtral", model_types=("mixtral",), read=read)
