"""A table of all ranks: which device of which node each runs on, and its part in the plan."""

from __future__ import annotations

from typing import Any

from planner.export.base import Exporter, Part
from planner.export.table import table_document, table_part
from planner.specs.plan import PlanFile


def _parts(file: PlanFile) -> tuple[Part, ...]:
    from planner.placement import place

    return (table_part(place(file.plan, file.cluster, file.model, file.job)),)


def _document(file: PlanFile) -> dict[str, Any]:
    from planner.placement import place

    return table_document(place(file.plan, file.cluster, file.model, file.job))


RANK_TABLE = Exporter(
    name="rank-table", summary="CSV: rank, node, device, and its part in the plan", parts=_parts, document=_document
)
