"""The passes of a schedule as text, a cell each, a row for every rank."""

from __future__ import annotations

from planner.schedules.base import Pass, Schedule

OTHER_WAY = "<"
"""Ends the cell of a pass in the pipeline that runs from the last rank to the first."""


def cell(one: Pass) -> str:
    """Return a pass as ``3F0``: micro-batch 0 forward on virtual stage 3.

    PyTorch's pipelines read such cells (torch/distributed/pipelining/schedules.py, 2.13, `_load_csv`), where all passes
    go the same way.
    """
    return f"{one.stage}{one.kind}{one.microbatch}{OTHER_WAY if one.direction else ''}"


def csv_text(listed: Schedule, num_stages: int, num_microbatches: int) -> str:
    """Return the passes of every rank, separated by commas, a line for each rank."""
    rows = listed.passes(num_stages, num_microbatches)
    return "".join(",".join(cell(one) for one in passes) + "\n" for passes in rows)
