"""Predicts measured runs, alike ones together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.accuracy.batch import batches
from planner.accuracy.judged import Judged
from planner.accuracy.run import Run
from planner.accuracy.setting import NotJudgedError, Setting, setting
from planner.costs.uniform import uniform_cost


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


def price(settings: Sequence[Setting]) -> list[tuple[float, float]]:
    """Return step time [s] and peak memory [bytes] of each setting."""
    import numpy as np

    found = [(0.0, 0.0)] * len(settings)
    for batch in batches(settings):
        cost = uniform_cost(batch.kind, batch.layouts)
        times, peaks = (np.broadcast_to(figure, len(batch.rows)) for figure in (cost.step_time, cost.peak_memory))
        for index, time, peak in zip(batch.rows, times.tolist(), peaks.tolist(), strict=True):
            found[index] = (time, peak)
    return found


def _refused(run: Run, reason: str) -> Judged:
    return Judged(run=run, profile="", step_time=None, peak_memory=None, memory_limit=None, reason=reason)


def _judged(run: Run, item: Setting, figures: tuple[float, float], headroom: float) -> Judged:
    return Judged(
        run=run,
        profile=item.profile,
        step_time=figures[0],
        peak_memory=figures[1],
        memory_limit=item.layout.group.device.memory * (1 - headroom),
        reason="",
    )
