"""A transformer layer: self-attention and a feed-forward block, each with its norm and residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.domain.model import AttentionCore, Matmul, SavedTensor, Shard, Work

SCORE_BYTES = 5
"""[bytes] kept per attention score without a fused kernel: softmax output, dropout output and its mask
(Korthikanti et al. 2022, section 4.1)."""
STATISTIC_BYTES = 4
"""[bytes] kept per query row and head by a fused kernel: the log-sum-exp in fp32 (Dao et al. 2022)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerLayer:
    """Multi-head or grouped-query attention and a gated or plain feed-forward block."""

    kind: ClassVar[str] = "transformer"

    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn: int
    """Width of the feed-forward block."""
    gated: bool
    """Whether the feed-forward block has three matrices (SwiGLU, GeGLU) instead of two."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    norm_parameters: int = 0
    """[-] of all norms of the layer together."""
    causal: bool = True
    dropout: bool = False

    @property
    def query_size(self) -> int:
        """Width of all heads together."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key (or value) heads together."""
        return self.num_kv_heads * self.head_dim

    @property
    def up_size(self) -> int:
        """Output width of the feed-forward block's first product, the gate included."""
        return 2 * self.ffn if self.gated else self.ffn

    @property
    def matrix_parameters(self) -> int:
        """[-] weights of the matrix products."""
        attention = self.hidden * (self.query_size + 2 * self.kv_size) + self.query_size * self.hidden
        return attention + self.hidden * (self.up_size + self.ffn)

    @property
    def split_bias_parameters(self) -> int:
        """[-] biases that are cut with the weights."""
        qkv = self.query_size + 2 * self.kv_size if self.qkv_bias else 0
        return qkv + (self.up_size if self.mlp_bias else 0)

    @property
    def whole_parameters(self) -> int:
        """[-] parameters of which every tensor rank holds all."""
        biases = (self.hidden if self.output_bias else 0) + (self.hidden if self.mlp_bias else 0)
        return biases + self.norm_parameters

    @property
    def parameters(self) -> int:
        """[-] number of parameters of the whole layer."""
        return self.matrix_parameters + self.split_bias_parameters + self.whole_parameters

    def flops(self, sequence: int) -> float:
        """Return the model FLOP of one sample, forward: 2 per weight and token, 4 s^2 per head and channel.

        The attention counts every score, masked or not, as published MFU figures do (Narayanan et al. 2021).
        """
        return 2.0 * self.matrix_parameters * sequence + 4.0 * sequence**2 * self.query_size

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return what a cut of the weights must divide."""
        return (
            ("attention heads", self.num_heads),
            ("key-value heads", self.num_kv_heads),
            ("feed-forward width", self.ffn),
        )

    def work(self, shard: Shard) -> Work:
        """Return the cost of one micro-batch on one device.

        The memory-bound passes are those of a fused implementation: eight passes over the hidden size, and inside
        the blocks the activation function and the rotary embedding.
        """
        tokens, split, size = shard.tokens, shard.weight_split, shard.bytes_per_element
        hidden, query, keys_values = self.hidden, self.query_size / split, 2 * self.kv_size / split
        rows = tokens * (self.num_heads / split)
        matmuls = (
            Matmul(tokens, query + keys_values, hidden, cut=True),
            Matmul(tokens, hidden, query),
            Matmul(tokens, self.up_size / split, hidden, cut=True),
            Matmul(tokens, hidden, self.ffn / split),
        )
        passes = (5 if self.gated else 3) * self.ffn + (6 if self.gated else 4) * self.query_size
        return Work(
            matmuls=matmuls,
            attention=AttentionCore(queries=rows, keys=shard.sequence, head_dim=self.head_dim, causal=self.causal),
            norm_bytes=8 * tokens * hidden * size / shard.norm_split,
            inner_bytes=0.5 * passes * tokens * size / split,
            block_output=tokens * hidden * size,
            num_blocks=2,
            gated=self.gated,
            queries=tokens * query * size,
            keys_values=tokens * keys_values * size,
            parameters=(self.matrix_parameters + self.split_bias_parameters) / split + self.whole_parameters,
            saved=self._saved(shard, rows),
            transient=tokens * (2 * hidden + self.up_size / split) * size + self._unfused_scores(shard, rows),
        )

    @staticmethod
    def _unfused_scores(shard: Shard, rows: float) -> float:
        """Return the bytes of the scores themselves, which an unfused kernel holds beside what it keeps."""
        return 0.0 if shard.fused_attention else shard.bytes_per_element * rows * shard.sequence

    def _saved(self, shard: Shard, rows: float) -> tuple[SavedTensor, ...]:
        """List what the backward pass needs (Korthikanti et al. 2022, section 4, without what fused kernels drop)."""
        tokens, split, size = shard.tokens, shard.weight_split, shard.bytes_per_element
        residual = tokens * self.hidden / shard.norm_split
        products = tokens * (2 * self.query_size + self.ffn) / split + 2 * residual
        inner = tokens * (2 * self.kv_size + self.up_size) / split + residual
        if shard.keeps_gathered:
            inner = inner + 2 * (tokens * self.hidden - residual)
        masks = 2 * residual if self.dropout else 0.0
        norms = shard.norm_kept * residual
        if self.gated:
            norms = norms + shard.rotary_kept * tokens * self.query_size / split
        scores = STATISTIC_BYTES * rows if shard.fused_attention else SCORE_BYTES * rows * shard.sequence
        return (
            SavedTensor(tag="input", size=residual * size),
            SavedTensor(tag="products", size=products * size),
            SavedTensor(tag="inner", size=inner * size + masks + norms),
            SavedTensor(tag="scores", size=scores),
        )
