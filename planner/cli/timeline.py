"""``planner timeline``: one step of a plan as it unfolds."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, say
from planner.cli.options import PlanSource

if TYPE_CHECKING:
    from planner.specs.plan import PlanFile


class Picture(str, Enum):
    """What a timeline is drawn as."""

    text = "text"
    chrome = "chrome"


def timeline(
    plan: PlanSource,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; default: printed.")
    ] = "-",
    form: Annotated[
        Picture | None,
        typer.Option("--format", help="chrome: JSON for ui.perfetto.dev, the default of FILE.json; else text."),
    ] = None,
) -> None:
    """Draw one step of a plan: who computes, sends and waits when."""
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.pipeline.observed import observe
    from planner.report.gantt import Gantt, gantt
    from planner.report.layout import WIDTH
    from planner.report.terminal import page_width, write
    from planner.report.trace import chrome_trace
    from planner.specs.files import write_whole
    from planner.specs.plan import read_plan

    refuse_unwritable(output)
    chosen = form or (Picture.chrome if output.lower().endswith(".json") else Picture.text)
    file = read_plan(plan)
    problems = judged(file)
    found = observe(file.plan, file.cluster, file.model, file.job)
    if chosen is Picture.chrome:
        drawn = Gantt(text=chrome_trace(file.plan, found, file.cluster), spans=())
    else:
        drawn = gantt(file.plan, found, page_width() if output == STDOUT else WIDTH)
    if output == STDOUT:
        write(drawn.text, spans=drawn.spans)
    else:
        write_whole(output, drawn.text)
    if problems:
        raise typer.Exit(PROBLEMS)


def judged(file: PlanFile) -> bool:
    """Pass on what is to be said of a plan; return whether it has problems.

    Raises:
        typer.Exit: it is not sound enough to be priced.
    """
    from planner.pipeline import judge
    from planner.report.problems import problems_text

    prediction, problems, notes = judge(file)
    for text in notes:
        say(f"note: {text}\n")
    if problems:
        say(problems_text(problems))
    if prediction is None:
        raise typer.Exit(PROBLEMS)
    return bool(problems)
