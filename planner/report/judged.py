"""What is said of a plan that was judged: its decision, speed and memory, and how far it is from the best."""

from __future__ import annotations

from typing import Any

from planner.domain.prediction import Outcome, Prediction
from planner.report.difference import Side, decided, in_words
from planner.report.figures import gib, percent, seconds, words
from planner.report.layout import joined
from planner.report.plan import decision, speed
from planner.report.staleness import stale_text
from planner.report.to_json import prediction_record
from planner.specs.plan import PlanFile, plan_record

ALIKE = 0.9
"""[-] of the fullest stage's share of memory from which on another is as full."""


def summary(file: PlanFile, prediction: Prediction | None, best: Outcome | None) -> list[str]:
    """Return what a plan is, a text for each line."""
    lines = [decision(file.plan)]
    if prediction:
        lines += [speed(prediction), *filter(None, [stale_text(file.plan)])]
        lines += [memory(prediction)] if prediction.fits else []
        lines += [against_best(file, prediction, best)] if best else []
    return lines


def memory(prediction: Prediction) -> str:
    """Return how full the fullest device is and by what, and the emptiest stage where it is another story."""
    stages = prediction.stages
    fullest = max(range(len(stages)), key=lambda index: stages[index].pressure)
    emptiest = min(range(len(stages)), key=lambda index: stages[index].pressure)
    full, empty = stages[fullest], stages[emptiest]
    part, size = max(full.memory, key=lambda held: held[1])
    text = f"memory {gib(full.peak_memory)} of {gib(full.device_memory)} GiB"
    text += f" on stage {fullest}" if len(stages) > 1 else ""
    text += f", {gib(size)} of them {words(part)}"
    if empty.pressure > full.pressure * ALIKE:
        return text
    text += f"; {gib(empty.peak_memory)} on stage {emptiest}"
    if full.in_flight > empty.in_flight:
        text += f" (micro-batches in flight: {full.in_flight:g} and {empty.in_flight:g})"
    return text


def against_best(file: PlanFile, prediction: Prediction, best: Outcome) -> str:
    """Return how far a plan is from the best one that was found for its job, and what is different in that."""
    there = _best_side(file, best)
    changed = in_words(decided(_side(file, prediction), there))
    takes = joined(seconds(best.prediction.step_time))
    if not prediction.fits:
        return f"it does not fit; the best found that does takes {takes}: {changed}"
    share = best.prediction.step_time / prediction.step_time
    if share >= 1 or not changed:
        return f"no better one was found: the search's takes {takes}"
    return f"{percent(share)} of the best found, which takes {takes}: {changed}"


def best_record(file: PlanFile, prediction: Prediction, best: Outcome) -> dict[str, Any]:
    """Return the best plan as plain data, and what is different in it."""
    changed = decided(_side(file, prediction), _best_side(file, best))
    return {
        "share": float(best.prediction.step_time / prediction.step_time),
        "differences": [{"name": one.name, "before": one.before, "after": one.after} for one in changed],
        "prediction": prediction_record(best.plan, best.prediction),
        "plan": plan_record(best.plan, file.cluster, file.model, file.job, best.certificate, best.prediction),
    }


def _side(file: PlanFile, prediction: Prediction | None) -> Side:
    return Side(plan=file.plan, cluster=file.cluster, model=file.model, job=file.job, prediction=prediction)


def _best_side(file: PlanFile, best: Outcome) -> Side:
    return Side(plan=best.plan, cluster=file.cluster, model=file.model, job=file.job, prediction=best.prediction)
