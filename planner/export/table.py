"""A table of the ranks of a placement, as text and as plain data."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from planner.export.base import Part

if TYPE_CHECKING:
    from planner.placement import Placement

NAME = "rank_table"
"""Of the file, without its ending."""


def table_part(placed: Placement) -> Part:
    """Return the table as CSV, one line a rank."""
    from planner.placement import Rank

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(Rank)]
    writer.writerow(names)
    writer.writerows([getattr(rank, name) for name in names] for rank in placed.ranks)
    return Part(name=f"{NAME}.csv", text=out.getvalue())


def table_document(placed: Placement) -> dict[str, Any]:
    """Return the table as plain data."""
    return {"format_version": "1.0", "rank_order": placed.order, "ranks": [asdict(rank) for rank in placed.ranks]}


def table_json(placed: Placement) -> Part:
    """Return the table as JSON."""
    return Part(name=f"{NAME}.json", text=json.dumps(table_document(placed), indent=2, sort_keys=True) + "\n")
