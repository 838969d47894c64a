"""The pipeline schedules as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.report.layout import WIDTH, labelled, table, wrapped_rows
from planner.schedules import Schedule


def show_schedules(schedules: Sequence[Schedule], width: int = WIDTH) -> str:
    """Return what each schedule is, and what frameworks call it; of a single one also what it does."""
    head = ["schedule", "chunks", "weights", "searched", "runs as"]
    rows = [
        [
            listed.name,
            f"{listed.virtual_stages} or more" if listed.with_chunks else str(listed.virtual_stages),
            f"{listed.directions * listed.weight_versions}x",
            "yes" if listed.searched else "no",
            ", ".join(f"{framework}: {name}" for framework, name in listed.runs_as) or "-",
        ]
        for listed in schedules
    ]
    if len(schedules) == 1:
        lines = [*labelled("", schedules[0].summary, width, indent=0), "", *table(head, rows)]
    else:
        lines = table(head, wrapped_rows(head, rows, width))
    note = (
        "chunks: virtual stages of a rank; weights: copies that the ranks hold together; searched: planner plan may"
        " choose it, planner predict --layout takes all of them"
    )
    return "\n".join([*lines, "", *labelled("", note, width, indent=0)]) + "\n"


def schedule_record(listed: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data."""
    return {
        "name": listed.name,
        "summary": listed.summary,
        "virtual_stages": listed.virtual_stages,
        "any_virtual_stages": listed.with_chunks is not None,
        "weight_copies": listed.directions * listed.weight_versions,
        "staleness": listed.staleness,
        "changes_semantics": listed.changes_semantics,
        "searched": listed.searched,
        "joins_steps": listed.joins_steps,
        "runs_as": dict(listed.runs_as),
    }
