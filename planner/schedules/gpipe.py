"""All forward passes, then all backward passes: simple, and every activation of the step is held.

Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (2019),
section 2.3. Micro-batches go backward in the order in which they went forward, as in Megatron-LM and PyTorch.
"""

from __future__ import annotations

from planner.schedules.base import Schedule


def _in_flight(_stage: int, _num_stages: int, num_microbatches: int) -> int:
    return num_microbatches


def _order(_stage: int, _num_stages: int, num_microbatches: int) -> str:
    return "F" * num_microbatches + "B" * num_microbatches


GPIPE = Schedule(
    name="gpipe",
    summary="all forward passes, then all backward passes; holds every micro-batch of the step",
    in_flight=_in_flight,
    order=_order,
    lanes=(("forward",), ("backward",)),
    changes_semantics=False,
    runs_as=(("torchtitan", "GPipe"),),
)
