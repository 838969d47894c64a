"""JSON Schemas of the spec files, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.errors import SpecError

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS = ("cluster", "model", "job", "plan")
"""Kinds of spec that have a schema."""


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of spec.

    Raises:
        SpecError: there is no such kind.

    """
    from planner.specs.problems import nearest

    if kind not in KINDS:
        raise SpecError.of("", f"no schema is called {kind!r}{nearest(kind, KINDS)}")
    found = _record(kind).model_json_schema(by_alias=True)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"planner {kind}"}
    return {**head, **{key: value for key, value in found.items() if key != "title"}}


def _record(kind: str) -> type[BaseModel]:
    """Return the record class of a kind."""
    from planner.specs.cluster_record import ClusterRecord
    from planner.specs.job_record import JobRecord
    from planner.specs.model import ModelRecord
    from planner.specs.plan_record import PlanRecord

    records: dict[str, type[BaseModel]] = {
        "cluster": ClusterRecord,
        "model": ModelRecord,
        "job": JobRecord,
        "plan": PlanRecord,
    }
    return records[kind]
