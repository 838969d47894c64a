"""What a model is to the planner: a chain of layers, each of which tells the work that it causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Number: TypeAlias = Any
"""A float, or a numpy array of floats where many layouts are priced at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The part of one micro-batch and of one layer that one device works on. Axes refine it, layers read it."""

    micro_batch: Number
    """[samples] of one micro-batch."""
    sequence: Number
    """[tokens] of one sample, undivided."""
    weight_split: Number = 1
    """[-] parts into which heads, feed-forward width and vocabulary are cut."""
    norm_split: Number = 1
    """[-] parts into which the tokens are cut outside of the matrix products (Megatron sequence parallelism)."""
    sequence_split: Number = 1
    """[-] parts into which each sample is cut everywhere."""
    norm_kept: Number = 0.0
    """[bytes] per token and hidden channel that the norms of a layer keep beside their inputs."""
    rotary_kept: Number = 0.0
    """[bytes] per token and query channel that rotary positions keep."""
    keeps_gathered: bool = False
    """Whether block inputs that are cut by `norm_split` are kept whole."""
    fused_attention: bool = True
    """Whether attention runs without storing the scores."""
    bytes_per_element: int = 2
    """[bytes] of an activation."""

    @property
    def tokens(self) -> Number:
        """[tokens] that enter a matrix product."""
        return self.micro_batch * self.sequence / self.sequence_split


@dataclass(frozen=True, slots=True)
class Matmul:
    """`count` matrix products of an (m, k) with a (k, n) matrix in the forward pass."""

    m: Number
    n: Number
    k: Number
    count: Number = 1
    cut: bool = False
    """Whether tensor ranks compute parts of the output from the whole input, whose gradients they have to add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCore:
    """Scores, softmax and weighted sum of one layer in the forward pass."""

    queries: Number
    """[-] query rows of all samples and heads on the device."""
    keys: Number
    """[tokens] that each query row sees, undivided and without a mask."""
    head_dim: Number
    causal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensor:
    """A tensor that the forward pass keeps for the backward pass, per micro-batch and device."""

    tag: str
    """``input`` (of the layer), ``scores`` (of attention), ``products`` (every other product's output, and that of
    attention) or ``inner``: recompute policies choose by it."""
    size: Number
    """[bytes]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one layer costs one device for one micro-batch in the forward pass, and what it keeps."""

    matmuls: tuple[Matmul, ...] = ()
    attention: AttentionCore | None = None
    norm_bytes: Number = 0.0
    """[bytes] moved by memory-bound passes over the hidden size (norms, residuals)."""
    inner_bytes: Number = 0.0
    """[bytes] moved by memory-bound passes inside attention and feed-forward (activation function, rotary)."""
    logits: Number = 0.0
    """[-] logits of the device's part of the vocabulary."""
    block_output: Number = 0.0
    """[bytes] of the partial sums that each block leaves where its weights are cut, undivided."""
    num_blocks: int = 0
    """Blocks whose partial sums must be added across the cut of the weights."""
    gated: bool = False
    """Whether the layer is one of RMS norms, rotary positions and a gated feed-forward block."""
    queries: Number = 0.0
    """[bytes] of queries on the device; the output of attention is as large."""
    keys_values: Number = 0.0
    """[bytes] of keys and values on the device."""
    parameters: Number = 0.0
    """[-] held by the device."""
    tied_parameters: Number = 0.0
    """[-] of these, copies of the embedding's weights."""
    saved: tuple[SavedTensor, ...] = ()
    transient: Number = 0.0
    """[bytes] needed only while the layer runs."""


class Layer(Protocol):
    """A kind of layer with its dimensions; the kinds stand in ``planner/layers``."""

    @property
    def kind(self) -> str:
        """Name of the kind, as written in specs."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters of the whole layer."""

    def flops(self, sequence: int) -> float:
        """Return the model FLOP of one sample in the forward pass, as published MFU counts them."""

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return (what, count) for everything that a cut of the weights must divide."""

    def work(self, shard: Shard) -> Work:
        """Return what the layer costs one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A chain: embedding, `num_layers` identical body layers, head."""

    name: str
    family: str
    embedding: Layer
    body: Layer
    head: Layer
    num_layers: int
    hidden: int
    max_sequence: int
    tied: bool
    """Whether the head uses the embedding's weights: then both ends of a pipeline hold a copy."""
    spec: tuple[tuple[str, object], ...]
    """The hyper-parameters as written, for plan files and export."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters, tied weights counted once."""
        return self.embedding.parameters + self.num_layers * self.body.parameters + self.head.parameters

    def flops_per_sample(self, sequence: int) -> float:
        """Return the model FLOP [FLOP] of one sample, forward and backward, without recompute."""
        forward = (
            self.embedding.flops(sequence) + self.num_layers * self.body.flops(sequence) + self.head.flops(sequence)
        )
        return 3 * forward
