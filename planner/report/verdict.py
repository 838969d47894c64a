"""Verdicts on files: for a reader, and as the stable JSON of ``planner check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.domain.configuration import Finding
from planner.errors import Problem, Repair
from planner.report.layout import WIDTH
from planner.report.problems import check_text, repair_lines

if TYPE_CHECKING:
    from planner.domain.prediction import Outcome, Prediction
    from planner.specs.plan import PlanFile


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
    lines: list[str] = []
    more: list[str] = []
    if file:
        from planner.report.judged import summary

        lines = summary(file, prediction, best)
    if prediction:
        from planner.report.pressure import warning_lines

        more += warning_lines(prediction, width - 2)
    more += repair_lines(repairs, width - 2) if repairs else []
    said = [*(f"{one}{f' [{one.code}]' * bool(one.code)}" for one in remarks), *notes]
    return check_text(source, problems, said, lines, width, warnings=warnings, more=more)


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
    from planner.report.judged import best_record
    from planner.report.to_json import prediction_record, problem_records, repair_records, warning_records

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
        "best": best_record(file, prediction, best) if file and prediction and best else None,
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
