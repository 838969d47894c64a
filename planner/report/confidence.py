"""How far a prediction can be trusted, in words."""

from __future__ import annotations

from planner.domain.prediction import Prediction
from planner.report.figures import gib, percent, seconds
from planner.report.layout import WIDTH, joined, labelled

OFTEN = "in 8 of 10 runs"
"""What lies between the 10th and the 90th percentile."""
GUESSED = "by other frameworks"
"""What stands there where the framework has no such percentiles."""


def likely_time(prediction: Prediction) -> str:
    """Return the interval of the step time in brackets, to stand behind it; nothing where it is not known."""
    if prediction.confidence is None:
        return ""
    interval = prediction.confidence.step_time
    low, high = seconds(interval.low), seconds(interval.high)
    number, unit = low.split(" ", 1)
    return f" ({number if high.endswith(f' {unit}') else low} to {high} {OFTEN if interval.own else GUESSED})"


def likely_memory(prediction: Prediction) -> str:
    """Return the interval of the peak memory in brackets, to stand behind it; nothing where it is only guessed."""
    if prediction.confidence is None or not prediction.confidence.peak_memory.own:
        return ""
    interval = prediction.confidence.peak_memory
    return f" ({gib(interval.low)} to {gib(interval.high)} {OFTEN})"


def confidence_lines(prediction: Prediction, width: int = WIDTH) -> list[str]:
    """Return the errors of the profile, and the reasons to doubt the prediction beyond them."""
    found = prediction.confidence
    if found is None:
        return []
    if found.held_out is None:
        text = f"{found.profile}: no held-out error; the interval is the widest of other frameworks"
    else:
        errors = found.held_out
        text = (
            f"{found.profile}: error {percent(errors.mape)} (median {percent(errors.median_ape)}) "
            f"on {joined(found.step_time.basis)}"
        )
    lines = labelled("profile", text, width)
    return lines + (labelled("doubtful", "; ".join(found.low), width) if found.low else [])
