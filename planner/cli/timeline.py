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
    chakra = "chakra"


def timeline(
    plan: PlanSource,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; a folder for chakra. Default: printed."),
    ] = "-",
    form: Annotated[
        Picture | None,
        typer.Option(
            "--format", help="text; chrome (ui.perfetto.dev; default of FILE.json); chakra (a trace for each rank)."
        ),
    ] = None,
) -> None:
    """Draw one step of a plan: who computes, sends and waits when."""
    from planner.cli.inputs import read_plan_file
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.pipeline.observed import observe
    from planner.report.gantt import Gantt, gantt
    from planner.report.layout import WIDTH
    from planner.report.terminal import page_width, write
    from planner.report.trace import chrome_trace
    from planner.specs.files import write_whole

    chosen = form or (Picture.chrome if output.lower().endswith(".json") else Picture.text)
    if chosen is Picture.chakra:
        _write_traces(plan, output)
        return
    refuse_unwritable(output)
    file = read_plan_file(plan)
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


def _write_traces(plan: str, output: str) -> None:
    """Write a trace for each rank into a folder, which is made.

    Raises:
        SpecError: no folder is named, or the traces cannot tell of the plan.
        typer.Exit: the plan has problems.
    """
    from pathlib import Path

    from planner.cli.inputs import read_plan_file
    from planner.cli.output import STDOUT
    from planner.errors import SpecError
    from planner.pipeline.observed import observe, traces
    from planner.report.overlap import overlap
    from planner.specs.files import write_whole

    if output == STDOUT:
        raise SpecError.of("--format chakra", "writes a file for each rank; name a folder with -o")
    file = read_plan_file(plan)
    problems = judged(file)
    parts = (file.plan, file.cluster, file.model, file.job)
    made = list(traces(*parts))
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError.of(output, f"cannot be made a folder ({error.strerror}); choose another path") from None
    for name, content in made:
        write_whole(str(Path(output) / name), content)
    say(f"wrote {len(made) - 1} traces to {output}, step.0.et and on; ASTRA-sim takes {Path(output) / 'step'}\n")
    if note := overlap(file.plan, observe(*parts)):
        say(f"note: {note}\n")
    if problems:
        raise typer.Exit(PROBLEMS)
