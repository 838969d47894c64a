"""PipeDream-2BW: 1F1B that never drains, on two versions of the weights; gradients are of weights one step old.

Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (2021), section 3.1 (double-buffered weight
updates). A micro-batch goes back on the version of the weights that it went forward on.
"""

from __future__ import annotations

from planner.schedules._unbroken import full_pipeline, unbroken_orders
from planner.schedules.base import Schedule, counted, letters, same

PIPEDREAM_2BW = Schedule(
    name="pipedream-2bw",
    summary="1f1b that never drains: nothing idles, two versions of the weights, gradients of weights one step old",
    in_flight=counted(unbroken_orders),
    order=letters(unbroken_orders),
    orders=unbroken_orders,
    changes_semantics=True,
    flushes=False,
    weight_versions=same(2),
    staleness=same(1),
    blocker=full_pipeline,
)
