"""Cost of a layer whose time was measured: the profile's seconds, the computed memory."""

from __future__ import annotations

from dataclasses import replace

from planner.costs.layer import LayerCost
from planner.domain.profile import LayerTimes


def measured_cost(cost: LayerCost, times: LayerTimes) -> LayerCost:
    """Return `cost` with the measured `times` in place of the computed ones.

    A profile does not tell attention from the rest of a layer: whatever a policy replays costs the whole forward pass,
    which is exact for full recompute and the most that any other can cost.
    """
    return replace(
        cost,
        forward=times.forward,
        backward=times.backward,
        replay=tuple((policy, times.forward if seconds else 0.0) for policy, seconds in cost.replay),
        parts=(("measured", times.forward + times.backward),),
        update=times.update,
    )
