"""Interleaved 1F1B: each stage holds several chunks of layers, and filling and draining take a chunk's time a stage.

Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (2021),
section 2.2.2; the memory in Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022),
section 4.2.3. The order is that of Megatron-LM: micro-batches go in groups of P through one chunk after the other.
"""

from __future__ import annotations

from functools import cache

from planner.schedules.base import Schedule


def _warm_up(stage: int, num_stages: int, num_passes: int, chunks: int) -> int:
    return min(num_passes, 2 * (num_stages - stage - 1) + (chunks - 1) * num_stages)


def _blocker(num_stages: int, num_microbatches: int) -> str:
    if num_stages < 2:
        return "needs at least 2 stages"
    if num_microbatches % num_stages:
        return f"needs micro-batches in groups of {num_stages}, one a stage; {num_microbatches} are no whole groups"
    return ""


@cache
def _interleaved(chunks: int) -> Schedule:
    """Return the schedule with `chunks` chunks of layers a stage."""

    def in_flight(stage: int, num_stages: int, num_microbatches: int) -> int:
        passes = chunks * num_microbatches
        return min(passes, _warm_up(stage, num_stages, passes, chunks) + 1)

    def order(stage: int, num_stages: int, num_microbatches: int) -> str:
        passes = chunks * num_microbatches
        warm_up = _warm_up(stage, num_stages, passes, chunks)
        return "F" * warm_up + "FB" * (passes - warm_up) + "B" * warm_up

    def chunk(index: int, num_stages: int) -> int:
        return index // num_stages % chunks

    return Schedule(
        name="interleaved",
        summary="1f1b over several chunks of layers a stage: fills and drains faster, holds more, sends more",
        in_flight=in_flight,
        order=order,
        lanes=(("forward", "backward"),),
        changes_semantics=False,
        virtual_stages=chunks,
        chunk=chunk,
        blocker=_blocker,
        with_chunks=_interleaved,
    )


INTERLEAVED = _interleaved(2)
