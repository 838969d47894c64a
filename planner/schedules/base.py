"""What a pipeline schedule is: the order in which each stage runs the passes of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

FORWARD = "F"
BACKWARD = "B"


class Operation(NamedTuple):
    """One pass of one micro-batch on one stage."""

    kind: str
    """``F`` (forward) or ``B`` (backward)."""
    micro_batch: int
    """Counted from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A pipeline schedule. Both functions take (stage, num_stages, num_microbatches), the stage counted from 0."""

    name: str
    """As written in job and plan files."""
    summary: str
    """One line for listings."""
    in_flight: Callable[[int, int, int], int]
    """Micro-batches whose activations the stage holds at once."""
    order: Callable[[int, int, int], str]
    """The passes of the stage, a letter each (``FFBFBB``): the m-th F takes micro-batch m forward, the m-th B backward.

    Micro-batches pass in order in every known schedule. A string says that in a byte a pass, and hundreds of thousands
    of passes are compared and counted at the speed of C.
    """
    lanes: tuple[tuple[str, ...], ...]
    """Parts of a stage's time that are paced together: the pipeline's pace is the sum over the lanes of the slowest
    stage's part in each."""
    changes_semantics: bool
    """Whether training differs from one step over the whole batch (stale or several copies of the weights)."""


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
