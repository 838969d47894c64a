"""The token embedding, with learned positions and token types where the family has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.domain.model import Shard, Work


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

    @property
    def whole_parameters(self) -> int:
        """[-] parameters of which every tensor rank holds all."""
        return (self.num_positions + self.num_token_types) * self.hidden + self.norm_parameters

    @property
    def parameters(self) -> int:
        """[-] number of parameters of the whole layer."""
        return self.vocabulary * self.hidden + self.whole_parameters

    def flops(self, sequence: int) -> float:  # noqa: ARG002 a look-up multiplies nothing, however long the sample
        """Return zero: a look-up multiplies nothing."""
        return 0.0

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return what a cut of the weights must divide: nothing, frameworks pad the vocabulary."""
        return ()

    def work(self, shard: Shard) -> Work:
        """Return the cost of one micro-batch on one device: one pass that reads and one that writes the rows."""
        output = shard.tokens * self.hidden * shard.bytes_per_element
        return Work(
            norm_bytes=2 * output,
            block_output=output,
            num_blocks=1,
            parameters=self.vocabulary * self.hidden / shard.weight_split + self.whole_parameters,
        )
