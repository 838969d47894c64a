"""``planner diff``: what two plans differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, say
from planner.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from planner.report.difference import Side
    from planner.specs.plan import PlanFile


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="Plan file, or -.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Plan file, or -.")],
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 if the decisions differ, as git diff does.")
    ] = False,
    form: FormatOption = Format.text,
) -> None:
    """Show what two plans differ in: decision, predicted time and memory."""
    from planner.cli.inputs import read_plan_file, refuse_shared_stdin
    from planner.report.difference import decided, difference_document, difference_text
    from planner.report.terminal import page_width, write
    from planner.report.to_json import dumped

    refuse_shared_stdin(before, after)
    one, other = side(read_plan_file(before)), side(read_plan_file(after))
    if form is Format.text:
        write(difference_text((before, after), one, other, page_width()))
    else:
        write(dumped(difference_document(one, other), form.value))
    if exit_code and decided(one, other):
        raise typer.Exit(PROBLEMS)


def side(file: PlanFile) -> Side:
    """Return a plan with its prediction; one that cannot be priced is said to have none."""
    from planner.pipeline import judge
    from planner.report.difference import Side

    prediction, problems, notes = judge(file)
    for text in notes:
        say(f"note: {file.origin}: {text}\n")
    for problem in problems:
        say(f"note: {file.origin}: {problem}\n")
    return Side(plan=file.plan, cluster=file.cluster, model=file.model, job=file.job, prediction=prediction)
