"""The command line: options to values, the pipeline's answers to text and exit codes; nothing is decided here."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from planner import __version__
from planner.cli import (
    accuracy,
    calibrate,
    check,
    diff,
    explain,
    export,
    importing,
    plan,
    predict,
    report,
    schema,
    show,
    timeline,
)
from planner.cli.command import INTERRUPTED, Command

__all__ = ["app", "main"]

# Looking for plugins of pydantic costs a tenth of the start-up time of `planner show`.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

app = typer.Typer(
    name="planner",
    help="Plan the distributed training of large models on clusters of like or unlike accelerators.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
app.command("plan", cls=Command)(plan.plan)
app.command("predict", cls=Command)(predict.predict)
app.command("check", cls=Command)(check.check)
app.command("diff", cls=Command)(diff.diff)
app.command("explain", cls=Command)(explain.explain)
app.command("timeline", cls=Command)(timeline.timeline)
app.command("report", cls=Command)(report.report)
app.command("export", cls=Command)(export.export)
app.command("accuracy", cls=Command)(accuracy.accuracy)
app.command("calibrate", cls=Command)(calibrate.calibrate)
app.add_typer(show.app, name="show")
app.command("schema", cls=Command)(schema.schema)
app.add_typer(importing.app, name="import")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planner {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Plan the distributed training of large models on clusters of like or unlike accelerators."""


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="planner")
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
