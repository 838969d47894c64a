"""One forward, one backward: after a warm-up each stage alternates, so that few activations are held.

Source: Narayanan et al., PipeDream-Flush in "Memory-Efficient Pipeline-Parallel DNN Training" (2021), section 3.2, and
"Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (2021), section 2.2.1.
"""

from __future__ import annotations

from planner.schedules.base import Schedule


def _in_flight(stage: int, num_stages: int, num_microbatches: int) -> int:
    return min(num_microbatches, num_stages - stage)


def _order(stage: int, num_stages: int, num_microbatches: int) -> str:
    warm_up = min(num_microbatches, num_stages - stage - 1)
    return "F" * warm_up + "FB" * (num_microbatches - warm_up) + "B" * warm_up


ONE_F_ONE_B = Schedule(
    name="1f1b",
    summary="warm-up, then one forward and one backward in turn; holds at most as many micro-batches as stages remain",
    in_flight=_in_flight,
    order=_order,
    changes_semantics=False,
    runs_as=(("megatron", "1F1B"), ("torchtitan", "1F1B"), ("deepspeed", "TrainSchedule")),
    exposes_transfers=True,
)
