"""Interleaved 1F1B: each stage holds several chunks of layers, and filling and draining take a chunk's time a stage.

Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (2021),
section 2.2.2; the memory in Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022),
section 4.2.3. The order is that of Megatron-LM 0.12 (megatron/core/pipeline_parallel/schedules.py): micro-batches go in
groups of P through one chunk after the other, or of more (`--microbatch-group-size-per-virtual-pipeline-stage`).
"""

from __future__ import annotations

from functools import cache, lru_cache

from planner.schedules._loops import turns, whole_groups, whole_order
from planner.schedules.base import Orders, Schedule, counted, letters


def _warm_up(stage: int, num_stages: int, num_passes: int, chunks: int, group: int) -> int:
    return min(num_passes, 2 * (num_stages - stage - 1) + (chunks - 1) * group)


@cache
def _interleaved(chunks: int) -> Schedule:
    """Return the schedule with `chunks` chunks of layers a stage."""

    def in_flight(stage: int, num_stages: int, num_microbatches: int) -> int:
        passes = chunks * num_microbatches
        return min(passes, _warm_up(stage, num_stages, passes, chunks, num_stages) + 1)

    def order(stage: int, num_stages: int, num_microbatches: int) -> str:
        passes = chunks * num_microbatches
        warm_up = _warm_up(stage, num_stages, passes, chunks, num_stages)
        return "F" * warm_up + "FB" * (passes - warm_up) + "B" * warm_up

    def chunk(index: int, num_stages: int) -> int:
        return index // num_stages % chunks

    return Schedule(
        name="interleaved",
        summary="1f1b over several chunks of layers a stage: fills and drains faster, holds more, sends more",
        in_flight=in_flight,
        order=order,
        changes_semantics=False,
        virtual_stages=chunks,
        chunk=chunk,
        runs_as=(("megatron", "interleaved 1F1B"), ("torchtitan", "Interleaved1F1B")),
        blocker=whole_groups,
        with_chunks=_interleaved,
        with_group=lambda group: _grouped(chunks, group),
    )


@cache
def _grouped(chunks: int, group: int) -> Schedule:
    """Return the schedule with micro-batches in groups of `group`, the last of which may be smaller."""

    @lru_cache(maxsize=2)
    def orders(num_stages: int, num_microbatches: int) -> Orders:
        there = turns(chunks, num_microbatches, group)
        return tuple(
            whole_order(there, rank, num_stages, _warm_up(rank, num_stages, len(there), chunks, group))
            for rank in range(num_stages)
        )

    def blocker(num_stages: int, num_microbatches: int) -> str:
        rest = num_microbatches % group
        if num_stages < 2:
            return "needs at least 2 stages"
        if not num_stages <= group <= num_microbatches:
            return (
                f"needs groups of {num_stages} to {num_microbatches:,} micro-batches, the stages and all of them; "
                f"not of {group}"
            )
        if 0 < rest < num_stages:
            return (
                f"needs a last group of {num_stages} micro-batches or more, one a stage; groups of {group} leave {rest}"
            )
        return ""

    return Schedule(
        name="interleaved",
        summary=INTERLEAVED.summary,
        in_flight=counted(orders),
        order=letters(orders),
        orders=orders,
        changes_semantics=False,
        virtual_stages=chunks,
        runs_as=(("megatron", "interleaved 1F1B"),),
        blocker=blocker,
        with_chunks=lambda number: _grouped(number, group),
        with_group=lambda size: _grouped(chunks, size),
    )


INTERLEAVED = _interleaved(2)
