"""XPipe: 1F1B that never drains and updates once a step, on weights that the first micro-batch of a step predicts.

Source: Guan et al., "XPipe: Efficient Pipeline Model Parallelism for Multi-GPU DNN Training" (2019), sections on the
workflow and on weight prediction. What is a mini-batch of T micro-batches there is a step here. Its first micro-batch,
the bellwether, predicts the weights for its forward pass and again for its backward pass, and the others of the step
use them: W - s lr m / (sqrt(v) + eps), with the moments of Adam. On rank k of N, counted from 0,
s = round((N + T - k / 2 - 2) / T) forward and round((T + floor(k / 2) - 1) / T) backward.
"""

from __future__ import annotations

from planner.schedules._unbroken import behind, beside, full_pipeline, unbroken_orders
from planner.schedules.base import Schedule, counted, letters


def _predicted(rank: int, num_stages: int, num_microbatches: int) -> tuple[int, int]:
    """Return s of both ways, halves rounded up, in whole numbers; a single stage is always up to date."""
    if num_stages == 1:
        return 0, 0
    ahead, back = 2 * (num_stages + num_microbatches - 2) - rank, num_microbatches + rank // 2 - 1
    return (ahead + num_microbatches) // (2 * num_microbatches), (2 * back + num_microbatches) // (2 * num_microbatches)


def _staleness(rank: int, num_stages: int, num_microbatches: int) -> int:
    """Return whether micro-batches of the last step have yet to go back when the first of a step goes forward."""
    return -(-behind(rank, num_stages, num_microbatches) // num_microbatches)


XPIPE = Schedule(
    name="xpipe",
    summary="1f1b that never drains; the first micro-batch of a step predicts the weights that all of them run on",
    in_flight=counted(unbroken_orders),
    order=letters(unbroken_orders),
    orders=unbroken_orders,
    changes_semantics=True,
    flushes=False,
    weight_versions=beside(_predicted),
    staleness=_staleness,
    predicted=_predicted,
    blocker=full_pipeline,
)
