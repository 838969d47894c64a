"""The kinds of layers, one file each: operations, weights, what the backward pass needs, what may be cut."""

from planner.layers.embedding import Embedding
from planner.layers.head import Head
from planner.layers.transformer import TransformerLayer

LAYER_KINDS = (Embedding, Head, TransformerLayer)

__all__ = ["LAYER_KINDS", "Embedding", "Head", "TransformerLayer"]
