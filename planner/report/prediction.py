"""Time and memory of a layout that somebody named."""

from __future__ import annotations

from collections.abc import Sequence

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.errors import Problem
from planner.report.confidence import confidence_lines, likely_memory
from planner.report.figures import gib, plural, words
from planner.report.header import header
from planner.report.layout import WIDTH, labelled, table
from planner.report.plan import decision, idle_lines, speed, training_lines, where_time_goes
from planner.report.problems import problem_lines
from planner.report.stages import ROWS, runs, stage_table


def prediction_text(
    plan: Plan,
    prediction: Prediction,
    problems: Sequence[Problem],
    cluster: Cluster,
    model: Model,
    job: Job,
    *,
    defaults: Sequence[str] = (),
    width: int = WIDTH,
) -> str:
    """Return the report on a layout; `defaults` are sentences on the values of the job that nobody chose."""
    lines = [
        *header(cluster, model, job, defaults, width),
        "",
        *stage_table(plan, prediction, cluster, width),
        "",
        *labelled("layout", decision(plan), width),
        *labelled("step", speed(prediction), width),
        *confidence_lines(prediction, width),
        *labelled("fits", _fits(prediction), width),
        *idle_lines(plan, cluster, job, width, searched=False),
        *training_lines(plan, prediction, cluster, job, width),
        "",
        *where_time_goes(prediction),
        "",
        "what fills a device, in GiB (the fullest stage of each row above)",
        *memory_lines(plan, prediction),
    ]
    if problems:
        lines += ["", f"{plural(len(problems), 'problem')}", *problem_lines(problems, width)]
    return "\n".join(lines) + "\n"


SHORT = {"gathered_weights": "gathered", "outside_allocator": "outside"}
"""Parts of the memory whose names are too wide for a column."""


def memory_lines(plan: Plan, prediction: Prediction) -> list[str]:
    """Return what fills the fullest device of each row of the table of stages, in GiB."""
    found = runs(plan, prediction)[:ROWS]
    parts = list(dict.fromkeys(name for run in found for name, size in run.fullest.memory if size > 0))
    head = ["stage", *(SHORT.get(part, words(part)) for part in parts), "all", "limit"]
    rows = []
    for run in found:
        sizes = dict(run.fullest.memory)
        cells = [gib(sizes.get(part, 0.0)) if sizes.get(part, 0.0) > 0 else "" for part in parts]
        stage = run.first + run.predictions.index(run.fullest)
        rows.append([str(stage), *cells, gib(run.fullest.peak_memory), gib(run.fullest.memory_limit)])
    return table(head, rows, right=",".join(head[1:]), indent=2)


def _fits(prediction: Prediction) -> str:
    """Return whether the layout fits, and by how much at the fullest stage."""
    index, stage = max(enumerate(prediction.stages), key=lambda item: item[1].peak_memory / item[1].memory_limit)
    margin = stage.memory_limit - stage.peak_memory
    state = f"{gib(margin)} GiB below" if stage.fits else f"{gib(-margin)} GiB above"
    answer = "yes" if prediction.fits else "NO"
    return (
        f"{answer}: stage {index} is the fullest, {gib(stage.peak_memory)} GiB{likely_memory(prediction)}, {state} "
        f"the limit of {gib(stage.memory_limit)} GiB (device memory {gib(stage.device_memory)} GiB less the head-room)"
    )
