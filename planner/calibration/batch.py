"""Step times of many runs at many points: runs are stacked once, and each constant is an array of factors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.accuracy.setting import Setting
from planner.calibration.constants import Constant
from planner.costs.batch import stack, structure
from planner.costs.uniform import Kind, Uniform, uniform_cost


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs that the same formulas price."""

    rows: tuple[int, ...]
    kind: Kind
    layouts: Uniform
    """All of them, stacked."""


def batches(settings: Sequence[Setting]) -> list[Batch]:
    """Return the settings in batches; `Batch.rows` are their places among `settings`."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, item in enumerate(settings):
        groups[item.kind, structure(item.layout)].append(index)
    return [
        Batch(tuple(rows), settings[rows[0]].kind, stack([settings[row].layout for row in rows]))
        for rows in groups.values()
    ]


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
