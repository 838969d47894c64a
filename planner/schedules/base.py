"""What a pipeline schedule is: the order in which each stage runs the passes of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

FORWARD = "F"
BACKWARD = "B"


class Operation(NamedTuple):
    """One pass of a stage, each way counted from 0."""

    kind: str
    """``F`` (forward) or ``B`` (backward)."""
    number: int
    """The micro-batch, where a stage is one chunk of layers; see `Schedule.chunk` elsewhere."""


def _only_chunk(_index: int, _num_stages: int) -> int:
    return 0


def _any_shape(_num_stages: int, _num_microbatches: int) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A pipeline schedule. `in_flight` and `order` take (stage, num_stages, num_microbatches), the stage from 0.

    Each stage holds `virtual_stages` chunks of layers (v), and takes each micro-batch through each of them: v passes
    each way for a micro-batch.
    """

    name: str
    """As written in job and plan files."""
    summary: str
    """One line for listings."""
    in_flight: Callable[[int, int, int], int]
    """Passes whose activations the stage holds at once: micro-batches, where it is one chunk."""
    order: Callable[[int, int, int], str]
    """The passes of the stage, a letter each (``FFBFBB``): the m-th F takes micro-batch m forward, the m-th B backward.

    With chunks, `chunk` tells which one a pass runs. Micro-batches pass in order in every known schedule. A string says
    that in a byte a pass, and hundreds of thousands of passes are compared and counted at the speed of C.
    """
    lanes: tuple[tuple[str, ...], ...]
    """Parts of a stage's time that are paced together: the pipeline's pace is the sum over the lanes of the slowest
    stage's part in each."""
    changes_semantics: bool
    """Whether training differs from one step over the whole batch (stale or several copies of the weights)."""
    exposes_transfers: bool = False
    """Whether a stage has nothing to do while it sends, so that a framework whose transfers block it makes it wait."""
    virtual_stages: int = 1
    """v: chunks of layers of each stage."""
    chunk: Callable[[int, int], int] = _only_chunk
    """(k, num_stages) -> the chunk that the k-th forward pass of every stage runs; the k-th backward pass runs the same
    one counted from the last."""
    blocker: Callable[[int, int], str] = _any_shape
    """(num_stages, num_microbatches) -> why the schedule cannot run these; empty if it can."""
    with_chunks: Callable[[int], Schedule] | None = None
    """v -> the same schedule with v chunks a stage; None if it knows one chunk only."""

    def held(self, stage: int, num_stages: int, num_microbatches: int) -> float:
        """Return the micro-batches whose activations the stage holds at once; a chunk counts as its share of one."""
        passes = self.in_flight(stage, num_stages, num_microbatches)
        return passes if self.virtual_stages == 1 else passes / self.virtual_stages


def operations(order: str) -> Iterator[Operation]:
    """Yield the passes that `order` stands for."""
    seen = {FORWARD: 0, BACKWARD: 0}
    for kind in order:
        yield Operation(kind, seen[kind])
        seen[kind] += 1


def peak_in_flight(order: str) -> int:
    """Return the most micro-batches that have gone forward and not yet backward at any time in `order`."""
    steady = (FORWARD + BACKWARD) * 2
    while steady in order:  # a repeated pair peaks where the first one does, and a short string is counted faster
        order = order.replace(steady, FORWARD + BACKWARD)
    held = peak = 0
    for kind in order:
        held += 1 if kind == FORWARD else -1
        peak = max(peak, held)
    return peak
