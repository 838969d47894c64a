"""Predicts measured runs."""

from __future__ import annotations

from collections.abc import Sequence

from planner.accuracy.judged import Judged
from planner.accuracy.run import Run


def judge_runs(runs: Sequence[Run], headroom: float) -> tuple[Judged, ...]:
    """Return each run with its prediction, in the order of `runs`; `headroom` is the share of memory left free."""
    assert 0 <= headroom < 1
    return tuple(
        Judged(run=run, profile="", step_time=None, peak_memory=None, memory_limit=None, reason="not built yet")
        for run in runs
    )
