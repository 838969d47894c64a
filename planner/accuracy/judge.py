"""Predicts measured runs, alike ones together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from planner.accuracy.batch import Batch, batches
from planner.accuracy.judged import Judged
from planner.accuracy.placed import placed_prediction
from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.accuracy.setting import Setting, setting
from planner.costs.uniform import UniformCost, uniform_cost


class Price(NamedTuple):
    """What is predicted of a setting."""

    step_time: float
    """[s]"""
    peak_memory: float
    """[bytes] on the fullest device."""
    device_memory: float
    """[bytes] of that device."""


def judge_runs(
    runs: Sequence[Run], headroom: float, transform: Callable[[Setting], Setting] | None = None
) -> tuple[Judged, ...]:
    """Return each run with its prediction, in the order of `runs`.

    `headroom` is the share of memory left free. `transform` is what to price instead of what ran, for comparisons.
    """
    settings = [_attempt(run) for run in runs]
    if transform is not None:
        settings = [transform(item) if isinstance(item, Setting) else item for item in settings]
    prices = iter(price([item for item in settings if isinstance(item, Setting)]))
    return tuple(
        _judged(run, item, next(prices), headroom) if isinstance(item, Setting) else _refused(run, item)
        for run, item in zip(runs, settings, strict=True)
    )


def _attempt(run: Run) -> Setting | str:
    """Return what `run` ran, or why it cannot be judged."""
    try:
        return setting(run)
    except NotJudgedError as error:
        return str(error)


def price(settings: Sequence[Setting]) -> list[Price]:
    """Return the price of each setting: like devices in closed form, many at once; unlike ones by their replay."""
    found: dict[int, Price] = {}
    like = [index for index, item in enumerate(settings) if not item.places]
    for batch in batches([settings[index] for index in like]):
        cost = uniform_cost(batch.kind, batch.layouts)
        found |= zip((like[row] for row in batch.rows), _prices(batch, cost), strict=True)
    for index, item in enumerate(settings):
        if item.places:
            found[index] = _placed_price(item)
    return [found[index] for index in range(len(settings))]


def _prices(batch: Batch, cost: UniformCost) -> list[Price]:
    import numpy as np

    figures = (cost.step_time, cost.peak_memory, batch.layouts.group.device.memory)
    rows = zip(*(np.broadcast_to(figure, len(batch.rows)).tolist() for figure in figures), strict=True)
    return [Price(*row) for row in rows]


def _placed_price(item: Setting) -> Price:
    """Return the price of a setting on unlike devices, the memory being that of its fullest stage."""
    prediction = placed_prediction(item)
    fullest = max(prediction.stages, key=lambda stage: stage.pressure)
    return Price(prediction.step_time, fullest.peak_memory, fullest.device_memory)


def _refused(run: Run, reason: str) -> Judged:
    return Judged(run=run, profile="", step_time=None, peak_memory=None, memory_limit=None, reason=reason)


def _judged(run: Run, item: Setting, found: Price, headroom: float) -> Judged:
    return Judged(
        run=run,
        profile=item.profile,
        step_time=found.step_time,
        peak_memory=found.peak_memory,
        memory_limit=found.device_memory * (1 - headroom),
        reason="",
    )
