"""``planner import``: foreign descriptions to spec files."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.command import Command
from planner.cli.options import ModelSource

app = typer.Typer(help="Turn a foreign description into a spec file.", no_args_is_help=True)


@app.callback()
def importing() -> None:
    """Turn a foreign description into a spec file."""


@app.command("model", cls=Command)
def model(
    source: ModelSource,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default it is printed.")
    ] = "-",
) -> None:
    """Turn a Hugging Face config.json into a model file."""
    from planner.cli.inputs import note
    from planner.cli.output import write_record
    from planner.specs.model import model_record, read_model

    write_record(model_record(read_model(source, note=note)), output)
