"""``planner export``: what others need to run a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, say
from planner.cli.options import Format, PlanSource

if TYPE_CHECKING:
    from planner.specs.plan import PlanFile


def export(
    plan: PlanSource,
    target: Annotated[str, typer.Option("--to", metavar="TARGET", help="rank-table or hostfile.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default it is printed.")
    ] = "-",
    form: Annotated[
        Format, typer.Option("--format", help="text is the target's own form; rank-table has json and yaml, too.")
    ] = Format.text,
) -> None:
    """Write what is needed to run a plan.

    A plan with problems is not written (exit code 1), nor one that the target cannot express (5).
    """
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.errors import SpecError
    from planner.export import exporter
    from planner.report.terminal import write
    from planner.report.to_json import dumped
    from planner.specs.files import write_whole
    from planner.specs.plan import read_plan

    chosen = exporter(target)
    if form is not Format.text and chosen.document is None:
        raise SpecError.of("--format", f"cannot be {form.value}: {target} has a form of its own; leave --format out")
    refuse_unwritable(output)
    file = read_plan(plan)
    _refuse_problems(file)
    text = (
        dumped(chosen.document(file), form.value) if chosen.document and form is not Format.text else chosen.text(file)
    )
    if output == STDOUT:
        write(text)
    else:
        write_whole(output, text)


def _refuse_problems(file: PlanFile) -> None:
    """Stop at a plan that `planner check` does not find good, and pass its notes on.

    Raises:
        typer.Exit: with the exit code of a plan with problems.
    """
    from planner.pipeline import judge
    from planner.report.problems import problems_text

    _, problems, notes = judge(file)
    for text in notes:
        say(f"note: {text}\n")
    if problems:
        say(problems_text(problems))
        raise typer.Exit(PROBLEMS)
