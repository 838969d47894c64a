"""Random pipelines for the replay."""

from __future__ import annotations

import random
from dataclasses import dataclass

from planner.schedules import SCHEDULES, Schedule, schedule
from planner.simulate import Replay, StageTimes, replay_orders

ONE_F_ONE_B = schedule("1f1b")
SPELLED = tuple(listed for listed in SCHEDULES if listed.orders is None)
"""Schedules whose ranks' letters say all of them."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Times [s] of one random pipeline; few values, so that ties and repetition are common."""

    forward: list[float]
    backward: list[float]
    hops_forward: list[float]
    hops_backward: list[float]
    sync: list[float]
    num_microbatches: int

    @property
    def times(self) -> tuple[list[float], list[float], list[float], list[float], list[float], int]:
        """The arguments of replay and bound, in their order."""
        hops = (self.hops_forward, self.hops_backward)
        return (self.forward, self.backward, *hops, self.sync, self.num_microbatches)


def drawn(draw: random.Random, most_microbatches: int, listed: Schedule = ONE_F_ONE_B) -> Pipeline:
    """Return a pipeline that a schedule can run; with chunks, each of them has its own time, and each joint too."""
    stages = draw.randint(1, 10)
    batches = draw.randint(1, most_microbatches)
    if listed.blocker(stages, batches):
        stages = max(2, stages)
        batches = stages * max(1, batches // stages)
    passes = stages * listed.virtual_stages
    values = (1.0, 1.5, 2.0, 3.0, 4.25) if draw.random() < 0.7 else [draw.uniform(0.5, 3.0) for _ in range(9)]
    hops = [draw.choice((0.0, 0.0, 0.25, 3.0)) for _ in range(2 * passes - 2)]
    return Pipeline(
        forward=[draw.choice(values) for _ in range(passes)],
        backward=[2 * draw.choice(values) for _ in range(passes)],
        hops_forward=hops[: passes - 1],
        hops_backward=hops[passes - 1 :],
        sync=[draw.choice((0.0, 1.0, 20.0)) for _ in range(stages)],
        num_microbatches=batches,
    )


def alike(
    listed: Schedule,
    shape: tuple[int, int],
    times: tuple[float, float, float] = (1.0, 1.0, 1.0),
    hop: float = 0.0,
    sync: float = 0.0,
) -> Replay:
    """Return the replay of passes by ranks that are alike.

    Args:
        listed: the schedule.
        shape: (stages, micro-batches).
        times: [s] of F, I and W of one micro-batch, all chunks of a rank together.
        hop: [s] of a transfer.
        sync: [s] of each exchange.

    """
    stages, microbatches = shape
    forward, inputs, weights = (time / listed.virtual_stages for time in times)
    took = StageTimes(forward=forward, backward=inputs + weights, weight=weights, sync=sync)
    runs = {place: took for hosted in listed.hosted(stages) for place in hosted}
    links = {(one, other): hop for one in range(stages) for other in range(stages) if one != other}
    return replay_orders(listed, runs, links, [sync] * stages, microbatches)
