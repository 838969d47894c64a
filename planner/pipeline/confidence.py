"""How far a prediction can be trusted, from the errors of its kind on runs that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.domain.cluster import Cluster
from planner.domain.confidence import Confidence, HeldOut, Interval, Spread, TrackRecord
from planner.domain.job import Job
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.pipeline.doubts import chips, doubts
from planner.specs import catalog


def with_confidence(prediction: Prediction, plan: Plan, cluster: Cluster, job: Job) -> Prediction:
    """Return the prediction with what the catalogue knows of the errors of its kind."""
    return replace(prediction, confidence=confidence(plan, prediction, cluster, job, catalog.track_record()))


def confidence(plan: Plan, prediction: Prediction, cluster: Cluster, job: Job, record: TrackRecord) -> Confidence:
    """Return how far a prediction can be trusted, by a record of errors."""
    used = chips(plan, cluster)
    times, memories = ([(row, getattr(row, part)) for row in record.held_out] for part in ("time", "memory"))
    own, _ = _nearest(times, job.framework, used)
    reasons = doubts(plan, prediction, cluster, job, record.measured)
    if own is None and job.framework in {runs.profile for runs in record.measured}:
        reasons = (*reasons, f"too few runs of {job.framework} were held out to tell its errors")
    return Confidence(
        profile=job.framework,
        held_out=own,
        step_time=_interval(prediction.step_time, times, job.framework, used),
        peak_memory=_interval(prediction.peak_memory, memories, job.framework, used),
        low=reasons,
    )


Spreads = Sequence[tuple[HeldOut, Spread | None]]
"""Rows of the record, each with its errors of one quantity."""


def _interval(predicted: float, spreads: Spreads, profile: str, used: Sequence[str]) -> Interval:
    """Return the interval of a quantity: by the nearest errors, or by the widest of all where there are none."""
    found, basis = _nearest(spreads, profile, used)
    if found is not None:
        return Interval(low=predicted * found.p10, high=predicted * found.p90, basis=basis, own=True)
    all_chips = [(row.profile, spread) for row, spread in spreads if spread and not row.chip]
    return Interval(
        low=predicted * min(spread.p10 for _, spread in all_chips),
        high=predicted * max(spread.p90 for _, spread in all_chips),
        basis=f"too few {profile} runs: the widest of {', '.join(name for name, _ in all_chips)}",
        own=False,
    )


def _nearest(spreads: Spreads, profile: str, used: Sequence[str]) -> tuple[Spread | None, str]:
    """Return the errors of a profile on the only chip in use, or else on all chips, and which runs say so."""
    for name in [*(used if len(used) == 1 else ()), ""]:
        for row, spread in spreads:
            if spread and (row.profile, row.chip) == (profile, name):
                where = f" on {name.upper()}" if name else ""
                return spread, f"{spread.rows} {profile} runs{where}, held out"
    return None, ""
