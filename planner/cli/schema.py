"""``planner schema``: JSON Schemas of the spec files, for editors."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="cluster, model, job or plan.")],
) -> None:
    """Print the JSON Schema of a kind of spec file."""
    import json

    from planner.report.terminal import write
    from planner.specs.schema import schema as found

    write(json.dumps(found(kind), indent=2, sort_keys=True, ensure_ascii=False) + "\n")
