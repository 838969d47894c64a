"""Step times of many runs at many points: runs are stacked once, and each constant is an array of factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.accuracy.batch import Batch
from planner.calibration.constants import Constant
from planner.costs.uniform import uniform_cost


def step_times(found: Sequence[Batch], free: Sequence[Constant], points: Any) -> Any:
    """Return the step times [s], shape (points, rows).

    Args:
        found: the runs.
        free: constants.
        points: logarithms of the factors on them, shape (points, constants).

    """
    import numpy as np

    factors = np.exp(points)
    times = np.empty((len(points), sum(len(batch.rows) for batch in found)))
    for batch in found:
        layouts = batch.layouts
        for column, constant in enumerate(free):
            layouts = constant.scaled(layouts, factors[:, column : column + 1])
        times[:, batch.rows] = uniform_cost(batch.kind, layouts).step_time
    return times
