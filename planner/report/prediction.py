"""Time and memory of a layout that somebody named."""

from __future__ import annotations

from collections.abc import Sequence

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import FORWARD_BACKWARD, PEAK_WORDS, Prediction
from planner.errors import Problem, Repair
from planner.report.confidence import confidence_lines, likely_memory
from planner.report.figures import gib, words
from planner.report.header import header
from planner.report.layout import WIDTH, fitted, heading, labelled
from planner.report.plan import decision, idle_lines, speed, training_lines, where_time_goes
from planner.report.pressure import warning_lines
from planner.report.problems import problem_count, problem_lines, repair_lines, spans
from planner.report.stages import ROWS, runs, stage_table
from planner.report.staleness import stale_lines
from planner.report.strip import strip_lines
from planner.simulate import Timeline


def prediction_text(
    plan: Plan,
    prediction: Prediction,
    problems: Sequence[Problem],
    cluster: Cluster,
    model: Model,
    job: Job,
    *,
    step: Timeline | None = None,
    defaults: Sequence[str] = (),
    repairs: Sequence[Repair] = (),
    width: int = WIDTH,
) -> str:
    """Return the report on a layout.

    Args:
        plan: what was named.
        prediction: its time and memory.
        problems: what is wrong with it.
        cluster: where it runs.
        model: what it trains.
        job: the training job.
        step: what the stages do in a step, as `planner.pipeline.observed.glance` tells.
        defaults: sentences on the values of the job that nobody chose.
        repairs: changes with which it would fit.
        width: [columns] of the page.
    """
    lines = [
        *header(cluster, model, job, defaults, width),
        "",
        *stage_table(plan, prediction, cluster, width),
        "",
        *labelled("layout", decision(plan), width),
        *labelled("step", speed(prediction), width),
        *stale_lines(plan, width),
        *confidence_lines(prediction, width),
        *labelled("fits", _fits(prediction), width),
        *warning_lines(prediction, width),
        *idle_lines(plan, cluster, job, width, searched=False),
        *training_lines(plan, prediction, cluster, job, width),
        *strip_lines(plan, prediction, step, width),
        "",
        *where_time_goes(plan, prediction, width),
        "",
        *memory_lines(plan, prediction, width),
    ]
    if problems:
        lines += ["", problem_count(problems), *problem_lines(problems, width)]
    if repairs:
        lines += ["", *repair_lines(repairs, width)]
    return "\n".join(lines) + "\n"


MEMORY_TITLE = "what fills a device, in GiB (the fullest stage of each row above; held: micro-batches in flight)"
SHORT = {
    "gradients": "grads",
    "fragmentation": "frag.",
    "gathered_weights": "gathered",
    "outside_allocator": "outside",
    "update_temporaries": "update",
}
"""Parts of the memory whose names are too wide for a column."""


def memory_lines(plan: Plan, prediction: Prediction, width: int = WIDTH) -> list[str]:
    """Return what fills the fullest device of each row of the table of stages at its peak, in GiB, and which peak."""
    found = runs(plan, prediction)[:ROWS]
    parts = list(dict.fromkeys(name for run in found for name, size in run.fullest.memory if size > 0))
    head = ["stage", "held", *(SHORT.get(part, words(part)) for part in parts), "all", "limit"]
    rows = []
    for run in found:
        sizes = dict(run.fullest.memory)
        cells = [gib(sizes.get(part, 0.0)) if sizes.get(part, 0.0) > 0 else "" for part in parts]
        stage = run.first + run.predictions.index(run.fullest)
        rows.append(
            [
                str(stage),
                f"{round(run.fullest.in_flight, 2):g}",
                *cells,
                gib(run.fullest.peak_memory),
                gib(run.fullest.memory_limit),
            ]
        )
    return [
        *heading(MEMORY_TITLE, width),
        *fitted(head, rows, width, right=",".join(head[1:]), indent=2),
        *labelled("  peak at:", _peak_at(prediction), width, indent=len("  peak at: ")),
    ]


def _peak_at(prediction: Prediction) -> str:
    """Return when memory is fullest: one moment, or each with its stages."""
    moments: dict[str, list[int]] = {}
    for index, stage in enumerate(prediction.stages):
        moments.setdefault(stage.peak_at, []).append(index)
    if len(moments) == 1:
        return PEAK_WORDS[next(iter(moments))]
    return "; ".join(f"{PEAK_WORDS[name]} (stage {spans(stages)})" for name, stages in moments.items())


def _fits(prediction: Prediction) -> str:
    """Return whether the layout fits, and by how much at the fullest stage."""
    index, stage = max(enumerate(prediction.stages), key=lambda item: item[1].peak_memory / item[1].memory_limit)
    margin = stage.memory_limit - stage.peak_memory
    moment = "" if stage.peak_at == FORWARD_BACKWARD else f" at {PEAK_WORDS[stage.peak_at]}"
    state = f"{gib(margin)} GiB below" if stage.fits else f"{gib(-margin)} GiB above"
    answer = "yes" if prediction.fits else "NO"
    return (
        f"{answer}: stage {index} is the fullest, {gib(stage.peak_memory)} GiB{likely_memory(prediction)}{moment}, "
        f"{state} the limit of {gib(stage.memory_limit)} GiB (device memory {gib(stage.device_memory)} GiB less the "
        "head-room)"
    )
