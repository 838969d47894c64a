"""Runs and judgements of known figures."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from planner.accuracy.judged import Judged
from planner.accuracy.run import Run
from planner.units import GIB

DATA = Path(__file__).parent / "data"
EMPTY = {field.name: "" if field.type == "str" else None for field in fields(Run)}
GROUP = {"source": "lab", "model": "m", "gpus": 8, "seq": 100, "gbs": 10}


def run(**given: object) -> Run:
    """Return a run of 1,000 tokens a step on 8 devices, with `given` fields."""
    return Run(**{**EMPTY, **GROUP, "place": "runs.csv, line 2", "row": {}, **given})  # type: ignore[arg-type]


def judged(
    step_time: float | None = None,
    gib: float | None = None,
    *,
    limit: float | None = 72,
    reason: str = "",
    **given: object,
) -> Judged:
    """Return a run with predicted step time [s], peak memory [GiB] and limit [GiB]."""
    return Judged(
        run=run(**given),
        profile="" if reason else "megatron",
        step_time=step_time,
        peak_memory=None if gib is None else gib * GIB,
        memory_limit=None if limit is None else limit * GIB,
        reason=reason,
    )
