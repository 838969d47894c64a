"""How far a prediction can be trusted: what others of its kind erred by on runs that nothing was fitted to."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_ROWS = 10
"""[runs] judged, from which on percentiles say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Errors over runs that were held out: no constant was fitted to them."""

    rows: int
    mape: float
    """[-] mean of abs(predicted / measured - 1)."""
    median_ape: float
    """[-] median of the same."""
    p10: float
    """[-] 10th percentile of measured / predicted, as the next two."""
    p50: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Errors of a framework's profile, on one chip or on all."""

    profile: str
    chip: str
    """As `chip` returns it; empty for all."""
    precisions: tuple[str, ...]
    """Of the runs, each once."""
    time: Spread | None
    """Of the step time; None where too few runs were held out."""
    memory: Spread | None
    """Of the peak memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRuns:
    """How often predictions were compared with runs of one kind, those that constants were fitted to included."""

    profile: str
    chip: str
    precision: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """All that is known about the errors of predictions."""

    held_out: tuple[HeldOut, ...]
    measured: tuple[MeasuredRuns, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Between what 8 of 10 measurements should lie."""

    low: float
    high: float
    basis: str
    """Which runs say so, in words."""
    own: bool
    """Whether they are runs of the profile; else the interval is a guess from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How far one prediction can be trusted."""

    profile: str
    """Of the framework whose constants the prediction used."""
    held_out: Spread | None
    """Errors of the profile's step times; None where too few runs were held out."""
    step_time: Interval
    """[s]"""
    peak_memory: Interval
    """[bytes] of the fullest device."""
    low: tuple[str, ...]
    """Reasons to doubt the prediction beyond the interval."""


def chip(device: str) -> str:
    """Return the chip of a device's name, ``h100`` of ``h100-sxm-80gb``: forms of one chip err alike."""
    return device.split("-", 1)[0].lower()
