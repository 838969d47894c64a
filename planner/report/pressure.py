"""Warnings of memory that is nearly full: what fits may still be slow."""

from __future__ import annotations

from planner.domain.prediction import Prediction, StagePrediction
from planner.report.figures import gib, percent
from planner.report.layout import WIDTH, labelled
from planner.report.problems import spans

FULL = 0.85
"""[-] share of the device's memory above which a stage is warned of."""
WHY = "published runs with 70 of 80 GB reserved took twice as long and more (nanotron benchmark of Hugging Face)"
"""Behind the Ultra-Scale Playbook. Others ran well as full as this (Hagemann et al. 2023): a warning, no formula."""


def warnings(prediction: Prediction) -> list[tuple[int, str]]:
    """Return (stage, message) for each stage that fits and is nearly full; one that does not fit is a problem."""
    return [
        (index, f"fills {_filled(stage)}: {WHY}")
        for index, stage in enumerate(prediction.stages)
        if stage.fits and stage.pressure > FULL
    ]


def warning_lines(prediction: Prediction, width: int = WIDTH) -> list[str]:
    """Return one warning for all stages that are nearly full, with the figures of the fullest."""
    found = [index for index, _ in warnings(prediction)]
    if not found:
        return []
    index = max(found, key=lambda stage: prediction.stages[stage].pressure)
    where = f"stages {spans(found)} fill more than {FULL:.0%}, stage {index}" if len(found) > 1 else ""
    text = f"{where or f'stage {index} fills'} {_filled(prediction.stages[index])}: {WHY}"
    return labelled("warning", text, width)


def _filled(stage: StagePrediction) -> str:
    """Return how full the device is."""
    return (
        f"{percent(stage.pressure)} of the device's memory, {gib(stage.peak_memory)} of {gib(stage.device_memory)} GiB"
    )
