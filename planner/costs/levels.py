"""What a stage's memory rises and falls by in the course of a step; `planner.costs.peaks` has the highest points."""

from __future__ import annotations

from dataclasses import dataclass

from planner.costs.peaks import total
from planner.costs.stage import StageTerms, stage_memory
from planner.domain.model import Number
from planner.units import Bytes

RESIDENT = frozenset({"weights", "gradients", "optimizer", "outside_allocator"})
"""Parts of `stage_memory` that are there from the first step to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Memory [bytes] of a stage: what stays, what a running pass adds, and what a micro-batch in flight adds.

    With as many micro-batches in flight as the stage holds at most they sum to the peak of forward and backward passes.
    """

    resident: Bytes = 0.0
    working: Bytes = 0.0
    held: Bytes = 0.0
    """Of one micro-batch; a pass of one of several chunks adds its share."""


NO_LEVELS = Levels()
"""Of a stage whose memory is not told."""


def memory_levels(terms: StageTerms, num_layers: Number, num_recomputed: Number) -> Levels:
    """Return what the memory of a stage is made of; all of it is linear in the micro-batches in flight."""
    empty, one = (stage_memory(terms, num_layers, num_recomputed, in_flight) for in_flight in (0.0, 1.0))
    resident = total((name, size) for name, size in empty if name in RESIDENT)
    return Levels(
        resident=float(resident), working=float(total(empty) - resident), held=float(total(one) - total(empty))
    )
