"""A table of all ranks: which device of which node each runs on, and its part in the plan."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from typing import Any

from planner.export.base import Exporter, Part
from planner.specs.plan import PlanFile


def _parts(file: PlanFile) -> tuple[Part, ...]:
    from planner.placement import Rank, place

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(Rank)]
    writer.writerow(names)
    placed = place(file.plan, file.cluster, file.model, file.job)
    writer.writerows([getattr(rank, name) for name in names] for rank in placed.ranks)
    return (Part(name="rank_table.csv", text=out.getvalue()),)


def _document(file: PlanFile) -> dict[str, Any]:
    from planner.placement import place

    placed = place(file.plan, file.cluster, file.model, file.job)
    return {"format_version": "1.0", "rank_order": placed.order, "ranks": [asdict(rank) for rank in placed.ranks]}


RANK_TABLE = Exporter(
    name="rank-table", summary="CSV: rank, node, device, and its part in the plan", parts=_parts, document=_document
)
