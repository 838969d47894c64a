"""JSON Schemas for editors."""

from __future__ import annotations

import json

import pytest

from planner.errors import SpecError
from planner.specs.schema import KINDS, schema


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_closed_and_plain(kind: str) -> None:
    """A schema is plain JSON and refuses unknown keys, as the reader does."""
    found = schema(kind)
    assert json.loads(json.dumps(found)) == found
    assert found["additionalProperties"] is False
    assert found["title"] == f"planner {kind}"


def test_keys_are_as_written() -> None:
    """The schema has the keys of the file, not those of the code."""
    assert "for" in schema("job")["properties"]
    assert "groups" in schema("cluster")["properties"]


def test_unknown_kind() -> None:
    """A misspelt kind is answered with the right one."""
    with pytest.raises(SpecError, match="did you mean plan"):
        schema("plna")
