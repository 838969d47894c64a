"""The passes of a schedule as text, a cell each, a row for every rank."""

from __future__ import annotations

import re
from functools import lru_cache

from planner.schedules.base import Orders, Pass, Schedule

OTHER_WAY = "<"
"""Ends the cell of a pass in the pipeline that runs from the last rank to the first."""

CELL = re.compile(r"([0-9]{1,7})([FBIW])([0-9]{1,7})")
"""Virtual stage, kind and micro-batch of a pass in the pipeline that begins at rank 0."""


def cell(one: Pass) -> str:
    """Return a pass as ``3F0``: micro-batch 0 forward on virtual stage 3.

    PyTorch's pipelines read such cells (torch/distributed/pipelining/schedules.py, 2.13, `_load_csv`), where all passes
    go the same way.
    """
    return f"{one.stage}{one.kind}{one.microbatch}{OTHER_WAY if one.direction else ''}"


def csv_text(listed: Schedule, num_stages: int, num_microbatches: int) -> str:
    """Return the passes of every rank, separated by commas, a line for each rank."""
    return "".join(f"{row}\n" for row in rows(listed.passes(num_stages, num_microbatches)))


def rows(orders: Orders) -> tuple[str, ...]:
    """Return the passes of every rank, separated by commas."""
    return tuple(",".join(cell(one) for one in passes) for passes in orders)


@lru_cache(maxsize=8)
def read_rows(written: tuple[str, ...]) -> Orders:
    """Return the passes that `rows` wrote, all of one direction and none of them paired.

    Raises:
        ValueError: something is no pass.

    """
    return tuple(tuple(_read(text) for text in row.split(",")) for row in written)


def _read(text: str) -> Pass:
    found = CELL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no pass")
    return Pass(found[2], int(found[3]), int(found[1]))
