"""SpecTrain: PipeDream's passes and updates on predicted weights in place of stashed ones.

Source: Chen et al., "Efficient and Robust Parallel DNN Training through Model Parallelism on Multi-GPU Platform"
(2018), section on weight prediction. Each pass runs on what the weights are expected to be when the micro-batch has
gone back through the whole pipeline, s updates in the direction of the last ones away: W - s lr v, where v is the
momentum. On rank k of N, counted from 0, s = floor(k / 2) + N - k - 1 for a forward pass and floor(k / 2) for a
backward one. A rank holds its weights and the predicted ones, which every pass makes anew.
"""

from __future__ import annotations

from planner.schedules._unbroken import behind, beside, full_pipeline, unbroken_orders
from planner.schedules.base import Schedule, counted, letters


def _predicted(rank: int, num_stages: int, num_microbatches: int) -> tuple[int, int]:
    """Return the updates that are left, seen from a forward and from a backward pass, of ranks that are alike."""
    return rank // 2 + behind(rank, num_stages, num_microbatches), rank // 2


SPECTRAIN = Schedule(
    name="spectrain",
    summary="1f1b that never drains and updates after each micro-batch; every pass predicts the weights it runs on",
    in_flight=counted(unbroken_orders),
    order=letters(unbroken_orders),
    orders=unbroken_orders,
    changes_semantics=True,
    flushes=False,
    updates_each=True,
    weight_versions=beside(_predicted),
    staleness=behind,
    predicted=_predicted,
    blocker=full_pipeline,
)
