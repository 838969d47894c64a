"""The pipeline schedules as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.domain.framework import Framework
from planner.report.layout import WIDTH, labelled, worded
from planner.schedules import Schedule

SHAPE = (8, 64)
"""Stages and micro-batches of a pipeline that shows whether ranks are alike."""


def show_schedules(schedules: Sequence[Schedule], frameworks: Sequence[Framework], width: int = WIDTH) -> str:
    """Return what each schedule is, and how `frameworks` run it; of a single one also what it does."""
    head = ["schedule", "chunks", "weights", "training", "runs as"]
    rows = [
        [
            listed.name,
            f"{listed.virtual_stages} or more" if listed.with_chunks else str(listed.virtual_stages),
            "by rank" if (copies := weight_copies(listed)) is None else f"{copies}x",
            "stale" if listed.changes_semantics else "same",
            _runs_as(listed, frameworks),
        ]
        for listed in schedules
    ]
    if len(schedules) == 1:
        lines = [*labelled("", schedules[0].summary, width, indent=0), "", *worded(head, rows, width)]
    else:
        lines = worded(head, rows, width)
    note = (
        "chunks: virtual stages of a rank; weights: copies that the ranks hold together; training: with stale weights,"
        " or the same as one step over the whole batch. planner plan chooses among 1f1b, gpipe, interleaved and what "
        "the framework has a name for, unless --schedule names one"
    )
    return "\n".join([*lines, "", *labelled("", note, width, indent=0)]) + "\n"


def _runs_as(listed: Schedule, frameworks: Sequence[Framework]) -> str:
    """Return what frameworks call a schedule, and which read its passes; a dash where none runs it."""
    names = [f"{framework}: {name}" for framework, name in listed.runs_as]
    return (
        ", ".join([*names, *(f"{name}: from a file of passes" for name in passes_from_file(listed, frameworks))]) or "-"
    )


def passes_from_file(listed: Schedule, frameworks: Sequence[Framework]) -> list[str]:
    """Return the frameworks that have no name for a schedule and run its passes, which `planner export` writes out."""
    named = dict(listed.runs_as)
    spelled = listed.orders is not None
    return [one.name for one in frameworks if spelled and listed.name in one.can.schedules and one.name not in named]


def weight_copies(listed: Schedule) -> int | None:
    """Return the copies of the weights that ranks hold together, versions included; None if it depends on the rank."""
    versions = everywhere(listed.weight_versions)
    return None if versions is None else listed.directions * versions


def everywhere(of: Callable[[int, int, int], int]) -> int | None:
    """Return what is the same on all ranks of a pipeline, looked at in one of a few stages; None if nothing is."""
    found = {of(rank, *SHAPE) for rank in range(SHAPE[0])}
    return found.pop() if len(found) == 1 else None


def schedule_record(listed: Schedule, frameworks: Sequence[Framework]) -> dict[str, Any]:
    """Return a schedule as plain data."""
    return {
        "name": listed.name,
        "summary": listed.summary,
        "virtual_stages": listed.virtual_stages,
        "any_virtual_stages": listed.with_chunks is not None,
        "weight_copies": weight_copies(listed),
        "staleness": everywhere(listed.staleness),
        "changes_semantics": listed.changes_semantics,
        "joins_steps": listed.joins_steps,
        "runs_as": dict(listed.runs_as),
        "runs_from_file": passes_from_file(listed, frameworks),
    }
