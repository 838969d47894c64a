"""The record of errors that predictions carry with them (catalog/errors.yaml), from judged runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from planner.accuracy.errors import errors, percentile
from planner.accuracy.judged import Judged
from planner.accuracy.setting import setting
from planner.domain.confidence import LEAST_ROWS, HeldOut, MeasuredRuns, Spread, TrackRecord, chip

DIGITS = 3
"""[-] behind the point; more would be noise."""

Pairs = Sequence[tuple[float | None, float | None]]
"""(predicted, measured)"""


def track_record(judged: Iterable[Judged], test: Iterable[Judged]) -> TrackRecord:
    """Return the record of runs of which those in `test` were held out.

    Flagged ones tell nothing of a prediction, nor do tensor ranks on several nodes, which predictions warn of.
    """
    measured = Counter(
        _kind(one) for one in judged if not one.run.flag and one.step_time and one.run.step_time is not None
    )
    parts: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for one in test:
        beyond = (one.run.tp or 1) > (one.run.gpus_per_node or 1)
        if not one.run.flag and not one.reason and not beyond:
            profile, name, _ = _kind(one)
            parts[profile, ""].append(one)
            parts[profile, name].append(one)
    held_out = [_held_out(profile, name, parts[profile, name]) for profile, name in sorted(parts)]
    return TrackRecord(
        held_out=tuple(row for row in held_out if row.time or row.memory),
        measured=tuple(
            MeasuredRuns(profile=profile, chip=name, precision=precision, rows=rows)
            for (profile, name, precision), rows in sorted(measured.items())
        ),
    )


def track_document(record: TrackRecord) -> dict[str, Any]:
    """Return the record as it is written."""
    found = asdict(record)
    for row in found["held_out"]:
        row["precisions"] = list(row["precisions"])
    return found


def _kind(one: Judged) -> tuple[str, str, str]:
    """Return profile, chip (with a plus between several) and precision of a run that could be judged."""
    found = setting(one.run)
    chips = dict.fromkeys(chip(group.device.name) for group in found.groups)
    return one.profile, "+".join(chips), found.layout.job.precision


def _held_out(profile: str, name: str, rows: Sequence[Judged]) -> HeldOut:
    return HeldOut(
        profile=profile,
        chip=name,
        precisions=tuple(sorted({_kind(one)[2] for one in rows})),
        time=spread([(one.step_time, one.run.step_time) for one in rows]),
        memory=spread([(one.peak_memory, one.run.peak_memory) for one in rows]),
    )


def spread(pairs: Pairs) -> Spread | None:
    """Return the errors of pairs that have both values, None where they are too few."""
    found = errors(pairs)
    if found.rows < LEAST_ROWS or found.mape is None or found.median_ape is None:
        return None
    ratios = sorted(measured / predicted for predicted, measured in pairs if predicted and measured)
    p10, p50, p90 = (round(percentile(ratios, share) or 0.0, DIGITS) for share in (0.1, 0.5, 0.9))
    return Spread(
        rows=found.rows,
        mape=round(found.mape, DIGITS),
        median_ape=round(found.median_ape, DIGITS),
        p10=p10,
        p50=p50,
        p90=p90,
    )
