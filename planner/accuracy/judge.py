"""Predictions of measured runs, priced together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from planner.accuracy.setting import NotJudgedError, Setting, setting
from planner.costs.batch import stack, structure
from planner.costs.uniform import uniform_cost

if TYPE_CHECKING:
    from planner.accuracy.runs import Run


def price(settings: Sequence[Setting]) -> list[tuple[float, float]]:
    """Return step time [s] and peak memory [bytes] of each setting."""
    import numpy as np

    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, item in enumerate(settings):
        groups[item.kind, structure(item.layout)].append(index)
    found: list[tuple[float, float]] = [(0.0, 0.0)] * len(settings)
    for indices in groups.values():
        cost = uniform_cost(settings[indices[0]].kind, stack([settings[i].layout for i in indices]))
        times = np.broadcast_to(cost.step_time, len(indices)).tolist()
        peaks = np.broadcast_to(cost.peak_memory, len(indices)).tolist()
        for index, time, peak in zip(indices, times, peaks, strict=True):
            found[index] = (time, peak)
    return found
