"""How far off predictions are, and how often they are wrong about what fits.

The signed error of a run is predicted / measured - 1: below 0 the planner is too optimistic. Its size is the absolute
percentage error (APE), the measure of the literature on performance models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from planner.accuracy.judged import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of a quantity over runs; None where there is no run."""

    rows: int
    """Runs with a measured and a predicted value."""
    mape: float | None
    """[-] mean of the absolute errors."""
    median_ape: float | None
    """[-] median of the absolute errors."""
    bias: float | None
    """[-] mean of the signed errors."""
    p10: float | None
    """[-] 10th percentile of the signed errors."""
    p90: float | None
    """[-] 90th percentile of the signed errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether runs fit, over those known to have run or to have run out of memory; None where there is none."""

    rows: int
    accuracy: float | None
    """[-] share that is predicted as it was."""
    false_fit: float | None
    """[-] share that is predicted to fit and ran out of memory."""
    false_oom: float | None
    """[-] share that is predicted not to fit and ran."""


def time_errors(judged: Iterable[Judged]) -> Errors:
    """Return the errors of the step time."""
    return errors([(one.step_time, one.run.step_time) for one in judged])


def memory_errors(judged: Iterable[Judged]) -> Errors:
    """Return the errors of the peak memory."""
    return errors([(one.peak_memory, one.run.peak_memory) for one in judged])


def errors(pairs: Iterable[tuple[float | None, float | None]]) -> Errors:
    """Return the errors of (predicted, measured); pairs that lack one of them do not count."""
    signed = sorted(
        predicted / measured - 1 for predicted, measured in pairs if predicted is not None and measured is not None
    )
    sizes = sorted(map(abs, signed))
    return Errors(
        rows=len(signed),
        mape=mean(sizes),
        median_ape=percentile(sizes, 0.5),
        bias=mean(signed),
        p10=percentile(signed, 0.1),
        p90=percentile(signed, 0.9),
    )


def fit(judged: Iterable[Judged]) -> Fit:
    """Return how often the prediction of what fits is right; a run that failed otherwise tells nothing."""
    known = [(one.fits, one.run.oom == "0") for one in judged if one.run.oom in {"0", "1"} and one.fits is not None]
    return Fit(
        rows=len(known),
        accuracy=mean([float(fits == ran) for fits, ran in known]),
        false_fit=mean([float(fits and not ran) for fits, ran in known]),
        false_oom=mean([float(ran and not fits) for fits, ran in known]),
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return fmean(values) if values else None


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """Return the value below which `share` of the sorted values lie, linear between two of them; None of nothing."""
    if not ascending:
        return None
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])
