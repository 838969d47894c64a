"""PipeDream: 1F1B that never drains and updates after every micro-batch, with a stash of the weights of each in flight.

Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training" (2019), section 3.3. What is a
minibatch there is a micro-batch here: it goes back on the version of the weights that it went forward on, which the
rank has kept, and its gradients change the newest one, after the replicas of the stage have exchanged theirs (section
3.1). On rank r of P, counted from 0, P - 1 - r other micro-batches go back in between,
w(t + 1) = w(t) - lr grad f(w_0(t - P + 1), ..., w_(P-1)(t)), and each of the P - r micro-batches in flight has its
version.
"""

from __future__ import annotations

from planner.schedules._unbroken import behind, full_pipeline, unbroken_orders
from planner.schedules.base import Schedule, counted, letters


def _stashed(rank: int, num_stages: int, num_microbatches: int) -> int:
    """Return the versions of a rank, one for each micro-batch in flight; the newest is among them."""
    return 1 + behind(rank, num_stages, num_microbatches)


PIPEDREAM = Schedule(
    name="pipedream",
    summary="1f1b that never drains and updates after each micro-batch; a version of the weights for each in flight",
    in_flight=counted(unbroken_orders),
    order=letters(unbroken_orders),
    orders=unbroken_orders,
    changes_semantics=True,
    flushes=False,
    updates_each=True,
    weight_versions=_stashed,
    staleness=behind,
    blocker=full_pipeline,
)
