"""Verdicts on files: for a reader, and as the stable JSON of ``planner check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.domain.configuration import Finding
from planner.domain.prediction import Outcome, Prediction
from planner.errors import Problem, Repair
from planner.report.difference import Side, decided, in_words
from planner.report.figures import gib, percent, seconds, words
from planner.report.layout import WIDTH, joined
from planner.report.plan import decision, speed
from planner.report.pressure import warning_lines
from planner.report.problems import check_text, repair_lines
from planner.report.to_json import prediction_record, problem_records, repair_records, warning_records
from planner.specs.plan import PlanFile, plan_record

ALIKE = 0.9
"""[-] of the fullest stage's share of memory from which on another is as full."""


def verdict_text(
    source: str,
    problems: Sequence[Problem],
    warnings: Sequence[Problem],
    remarks: Sequence[Problem],
    notes: Sequence[str],
    file: PlanFile | None,
    prediction: Prediction | None,
    repairs: Sequence[Repair] = (),
    best: Outcome | None = None,
    width: int = WIDTH,
) -> str:
    """Return what is to be said of one file, its plan and how far that is from the best."""
    summary = [decision(file.plan)] if file else []
    more: list[str] = []
    if file and prediction:
        summary.append(speed(prediction))
        summary += [memory(prediction)] if prediction.fits else []
        summary += [against_best(file, prediction, best)] if best else []
        more += warning_lines(prediction, width - 2)
    more += repair_lines(repairs, width - 2) if repairs else []
    said = [*(f"{one}{f' [{one.code}]' * bool(one.code)}" for one in remarks), *notes]
    return check_text(source, problems, said, summary, width, warnings=warnings, more=more)


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


def verdict_record(
    source: str,
    kind: str,
    problems: Sequence[Problem],
    findings: Sequence[Finding],
    notes: Sequence[str],
    file: PlanFile | None,
    prediction: Prediction | None,
    repairs: Sequence[Repair] = (),
    best: Outcome | None = None,
) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "file": source,
        "kind": kind or None,
        "readable": bool(kind),
        "good": not problems,
        "problems": problem_records(problems),
        "findings": [finding_record(one) for one in findings],
        "notes": list(notes),
        "warnings": warning_records(prediction) if prediction else [],
        "repairs": repair_records(repairs),
        "prediction": prediction_record(file.plan, prediction) if file and prediction else None,
        "best": _best_record(file, prediction, best) if file and prediction and best else None,
    }


def finding_record(one: Finding) -> dict[str, Any]:
    """Return a finding with its place."""
    return {
        "code": one.code,
        "severity": one.severity,
        "line": one.spot.line or None,
        "column": one.spot.column or None,
        "key": one.key or None,
        "message": one.message,
    }


def _best_record(file: PlanFile, prediction: Prediction, best: Outcome) -> dict[str, Any]:
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
