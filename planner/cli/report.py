"""``planner report``: a plan as one page for a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.command import INTERRUPTED, PROBLEMS, say
from planner.cli.options import PlanSource


def report(
    plan: PlanSource,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page; default: printed.")
    ] = "-",
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Search again, to show the alternatives.")
    ] = True,
) -> None:
    """Write a plan as one page for a browser, with everything in a single file."""
    from planner import pipeline
    from planner.cli.explain import explained, searched
    from planner.cli.inputs import parsed_file
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.pipeline.observed import observe
    from planner.placement import place
    from planner.report.page import Subject, page
    from planner.report.problems import problems_text
    from planner.report.terminal import write
    from planner.specs.files import read_text, write_whole

    refuse_unwritable(output)
    text, origin = read_text(plan)
    file = parsed_file(text, origin, plan)
    prediction, problems, notes = pipeline.judge(file)
    for note in notes:
        say(f"note: {note}\n")
    if problems:
        say(problems_text(problems))
    if prediction is None:
        raise typer.Exit(PROBLEMS)
    parts = (file.plan, file.cluster, file.model, file.job)
    found = searched(file) if search else None
    made = page(
        Subject(
            plan=file.plan,
            prediction=prediction,
            problems=problems,
            cluster=file.cluster,
            model=file.model,
            job=file.job,
            certificate=None if file.edited else file.certificate,
            placed=place(*parts),
            timeline=observe(*parts),
            found=found,
            document=explained(file, prediction, problems, found, []),
            text=text,
            origin=origin,
        )
    )
    if output == STDOUT:
        write(made)
    else:
        write_whole(output, made)
    if found and found.search.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if problems:
        raise typer.Exit(PROBLEMS)
