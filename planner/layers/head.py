"""The head: last norm, projection to the vocabulary, loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.domain.model import Matmul, Shard, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Projection to the vocabulary, cut over tensor ranks by columns, and the cross entropy."""

    kind: ClassVar[str] = "head"

    hidden: int
    vocabulary: int
    tied: bool
    """Whether the projection uses the embedding's weights."""
    bias: bool = False
    norm_parameters: int = 0
    num_dense: int = 0
    """Square dense layers with bias between body and projection (BERT's transform, pooler)."""
    extra_parameters: int = 0
    """[-] parameters beside these (the norm of BERT's transform, its classifier)."""
    row_size: int | None = None
    """Channels to which a product without bias takes the hidden size before the projection; None: `hidden`."""

    @property
    def token_size(self) -> int:
        """Channels that the projection to the vocabulary takes."""
        return self.row_size or self.hidden

    @property
    def whole_parameters(self) -> int:
        """[-] parameters of which every tensor rank holds all."""
        dense = self.num_dense * (self.hidden**2 + self.hidden)
        narrowing = self.row_size * self.hidden if self.row_size else 0
        return dense + narrowing + self.norm_parameters + self.extra_parameters

    @property
    def parameters(self) -> int:
        """[-] number of parameters of the whole layer, tied weights left out."""
        projection = 0 if self.tied else self.vocabulary * self.token_size
        return projection + (self.vocabulary if self.bias else 0) + self.whole_parameters

    def flops(self, sequence: int) -> float:
        """Return the model FLOP of one sample, forward: 2 per weight and token."""
        narrowing = self.row_size * self.hidden if self.row_size else 0
        return 2.0 * sequence * (self.vocabulary * self.token_size + self.num_dense * self.hidden**2 + narrowing)

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return what a cut of the weights must divide: nothing, frameworks pad the vocabulary."""
        return ()

    def work(self, shard: Shard) -> Work:
        """Return the cost of one micro-batch on one device, its own (untied or copied) projection included."""
        tokens, split, size = shard.tokens, shard.weight_split, shard.bytes_per_element
        projection = self.vocabulary * (self.token_size + (1 if self.bias else 0)) / split
        dense = (Matmul(tokens, self.hidden, self.hidden, self.num_dense),) if self.num_dense else ()
        narrowing = (Matmul(tokens, self.row_size, self.hidden),) if self.row_size else ()
        return Work(
            matmuls=(*dense, *narrowing, Matmul(tokens, self.vocabulary / split, self.token_size, cut=True)),
            norm_bytes=2 * tokens * self.hidden * size / shard.norm_split,
            logits=tokens * self.vocabulary / split,
            block_output=tokens * self.hidden * size,
            num_blocks=1,
            parameters=projection + self.whole_parameters,
            tied_parameters=self.vocabulary * self.token_size / split if self.tied else 0.0,
        )
