"""Orders of pipelines that never drain: 1F1B whose micro-batches come in without a break, update or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from planner.schedules._loops import turns, whole_order
from planner.schedules.base import Orders


@lru_cache(maxsize=2)
def unbroken_orders(num_stages: int, num_microbatches: int) -> Orders:
    """Return the passes of every rank: those of one step, with the beginning and the end that a run of it has."""
    there = turns(1, num_microbatches, num_microbatches)
    return tuple(
        whole_order(there, rank, num_stages, min(num_microbatches, num_stages - 1 - rank)) for rank in range(num_stages)
    )


def full_pipeline(num_stages: int, num_microbatches: int) -> str:
    """Return why a step is too short to fill the pipeline, as it is all the time; empty if it is not."""
    if num_microbatches < num_stages:
        return f"needs {num_stages} micro-batches or more, one a stage; there are {num_microbatches}"
    return ""


def behind(rank: int, num_stages: int, _num_microbatches: int) -> int:
    """Return the micro-batches that go back on a rank between one's forward pass and its backward pass."""
    return num_stages - 1 - rank


def beside(predicted: Callable[[int, int, int], tuple[int, int]]) -> Callable[[int, int, int], int]:
    """Return `Schedule.weight_versions` where ranks hold predicted weights beside their own, if they need any."""

    def versions(rank: int, num_stages: int, num_microbatches: int) -> int:
        return 1 + any(predicted(rank, num_stages, num_microbatches))

    return versions
