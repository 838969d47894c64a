"""Time that schedules take which run on predicted weights: making them, and gathering what is sharded."""

from __future__ import annotations

from planner.costs.compute import pass_time
from planner.costs.exchange import Exchange
from planner.domain.model import Number
from planner.schedules import Schedule
from planner.units import Seconds


def prediction_time(listed: Schedule, shape: tuple[int, int, int], exchange: Exchange, parameters: Number) -> Seconds:
    """Return the seconds that a rank predicts the weights of `parameters` between two updates.

    W - s lr v reads all that the optimizer keeps of a weight and writes the weight (Chen et al. 2018 with momentum,
    Guan et al. 2019 with the moments of Adam): a pass over memory for each prediction, and over the rank's shard only
    where ZeRO shards the optimizer. What passes run on is then gathered: once an update in place of the weights
    themselves, and once more where forward and backward passes run on unlike ones.

    Args:
        listed: the schedule.
        shape: rank, stages and micro-batches.
        exchange: of the rank's replicas.
        parameters: [-] of the rank.

    """
    times = listed.predictions(*shape)
    if not times:
        return 0.0
    gathered = 0.0 if listed.shares_weights(*shape) else exchange.gather_time(parameters)
    return times * pass_time(exchange.per.predict * parameters, exchange.group.device) + gathered
