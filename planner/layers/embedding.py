"""The token embedding, with learned positions and token types where the family has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.domain.model import Matmul, Shard, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """Rows of the vocabulary, cut over tensor ranks by rows, and small tables of which every rank holds all."""

    kind: ClassVar[str] = "embedding"

    hidden: int
    vocabulary: int
    num_positions: int = 0
    """Learned positions; zero where positions are computed."""
    num_token_types: int = 0
    norm_parameters: int = 0
    row_size: int | None = None
    """Channels of a token's row where a product without bias takes them to `hidden` (OPT-350M); None: `hidden`."""
    num_spare_positions: int = 0
    """Rows of the table of positions that no token takes (OPT and BART leave the first two to padding)."""

    @property
    def token_size(self) -> int:
        """Channels of a token's row."""
        return self.row_size or self.hidden

    @property
    def projection_parameters(self) -> int:
        """[-] weights of the product that takes rows to the hidden size, zero where they have it."""
        return self.row_size * self.hidden if self.row_size else 0

    @property
    def whole_parameters(self) -> int:
        """[-] parameters of which every tensor rank holds all."""
        rows = self.num_positions + self.num_spare_positions + self.num_token_types
        return rows * self.hidden + self.norm_parameters + self.projection_parameters

    @property
    def parameters(self) -> int:
        """[-] number of parameters of the whole layer."""
        return self.vocabulary * self.token_size + self.whole_parameters

    def flops(self, sequence: int) -> float:
        """Return the model FLOP of one sample, forward: a look-up multiplies nothing, the projection of rows does."""
        return 2.0 * sequence * self.projection_parameters

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return what a cut of the weights must divide: nothing, frameworks pad the vocabulary."""
        return ()

    def work(self, shard: Shard) -> Work:
        """Return the cost of one micro-batch on one device: one pass that reads and one that writes the rows."""
        output = shard.tokens * self.hidden * shard.bytes_per_element
        return Work(
            matmuls=(Matmul(shard.tokens, self.hidden, self.row_size),) if self.row_size else (),
            norm_bytes=2 * output,
            block_output=output,
            num_blocks=1,
            parameters=self.vocabulary * self.token_size / shard.weight_split + self.whole_parameters,
        )
