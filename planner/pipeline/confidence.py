"""How far a prediction can be trusted, from the errors of its kind on runs that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.domain.cluster import Cluster
from planner.domain.confidence import LEAST_ROWS, Confidence, HeldOut, Interval, MeasuredRuns, Spread, TrackRecord, chip
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.pipeline.doubts import chips, doubts
from planner.specs import catalog


def with_confidence(prediction: Prediction, plan: Plan, cluster: Cluster, model: Model, job: Job) -> Prediction:
    """Return the prediction with what the catalogue knows of the errors of its kind."""
    found = confidence(plan, prediction, cluster, job, catalog.track_record())
    if job.sequence > model.max_sequence > 0:
        beyond = f"{job.sequence:,} tokens are beyond the {model.max_sequence:,} of {model.name}"
        found = replace(found, low=(*found.low, beyond))
    return replace(prediction, confidence=found)


def confidence(plan: Plan, prediction: Prediction, cluster: Cluster, job: Job, record: TrackRecord) -> Confidence:
    """Return how far a prediction can be trusted, by a record of errors."""
    used = chips(plan, cluster)
    calibrated = _calibrated(cluster, job, used)
    times = [*((row, row.time) for row in calibrated), *((row, row.time) for row in record.held_out)]
    memories = [(row, row.memory) for row in record.held_out]
    own, _ = _nearest(times, job.framework, used)
    mine = [
        MeasuredRuns(profile=row.profile, chip=row.chip, precision=job.precision, rows=row.time.rows)
        for row in calibrated
        if row.time
    ]
    reasons = doubts(plan, prediction, cluster, job, (*record.measured, *mine))
    if own is None and job.framework in {runs.profile for runs in record.measured}:
        reasons = (*reasons, f"too few runs of {job.framework} were held out to tell its errors")
    return Confidence(
        profile=job.framework,
        held_out=own,
        step_time=_interval(prediction.step_time, times, job.framework, used),
        peak_memory=_interval(prediction.peak_memory, memories, job.framework, used),
        low=reasons,
    )


def _calibrated(cluster: Cluster, job: Job, used: Sequence[str]) -> list[HeldOut]:
    """Return the cross-validated errors of the cluster's own runs, where they are about this prediction."""
    found = cluster.calibration
    if found is None or found.rows < LEAST_ROWS:
        return []
    if found.framework != job.framework or list(used) != [chip(found.device)]:
        return []
    p10, p50, p90 = found.residuals
    error = found.error_cross_validated
    spread = Spread(rows=found.rows, mape=error.mape, median_ape=error.median, p10=p10, p50=p50, p90=p90)
    return [HeldOut(profile=found.framework, chip=chip(found.device), precisions=(), time=spread, memory=None)]


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
                width = f" in {', '.join(row.precisions)}" if row.precisions else ""
                return spread, f"{spread.rows} {profile} runs{where}{width}, held out"
    return None, ""
