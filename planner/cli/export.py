"""``planner export``: what others need to run a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, say
from planner.cli.options import Format, PlanSource

if TYPE_CHECKING:
    from planner.export import Part
    from planner.specs.plan import PlanFile


def export(
    plan: PlanSource,
    target: Annotated[
        str, typer.Option("--to", metavar="TARGET", help="A framework, a launcher, rank-table or hostfile.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="A file, or FOLDER/ for everything; default: printed."),
    ] = "-",
    only: Annotated[
        str | None, typer.Option("--only", metavar="PART", help="Print this part of the export, such as arguments.")
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option("--framework", metavar="NAME", help="What a launcher starts; default the plan's framework."),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="text is the target's own form; rank-table has json and yaml, too.")
    ] = Format.text,
) -> None:
    """Write what is needed to run a plan.

    Printed is one part; a target that has several needs a folder, or --only, to be written.

    A plan with problems is not written (exit code 1), nor one that the target cannot express (5).
    """
    from planner.cli.inputs import read_plan_file
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.errors import SpecError
    from planner.export import Exporter
    from planner.export import target as find_target
    from planner.pipeline.written import as_document, bundle, named_part, parts
    from planner.report.terminal import write
    from planner.specs.files import write_whole

    chosen = find_target(target)
    if framework is not None and isinstance(chosen, Exporter):
        raise SpecError.of("--framework", f"is for launchers; {target} is none, leave it out")
    folder = output != STDOUT and (output.endswith("/") or Path(output).is_dir())
    if not folder:
        refuse_unwritable(output)
    file = read_plan_file(plan)
    _refuse_problems(file)
    if form is not Format.text:
        text = as_document(chosen, file, form.value)
    elif folder and only is None:
        _write_folder(bundle(chosen, file, framework), output)
        return
    else:
        found = parts(chosen, file, framework)
        text = (_whole(found, output) if only is None else named_part(found, only)).text
    if output == STDOUT:
        write(text)
    else:
        write_whole(output, text)


def _whole(found: tuple[Part, ...], output: str) -> Part:
    """Return the only part, or the first of several, of which the others are told where it is printed.

    Raises:
        SpecError: several are to go into one file.
    """
    from planner.cli.output import STDOUT
    from planner.errors import SpecError

    first, *others = (part.name for part in found)
    if not others:
        return found[0]
    told = f"{first}, which goes with {', '.join(others)}"
    if output == STDOUT:
        say(f"note: this is {told}; -o FOLDER/ writes all that a run needs, --only PART prints another\n")
        return found[0]
    folder = f"{Path(output).with_suffix('')}/"
    remedy = f"-o {folder} writes all that a run needs into a folder, --only {first} this part alone"
    raise SpecError.of("--output", f"{output} would hold only {told}; {remedy}")


def _write_folder(found: tuple[Part, ...], output: str) -> None:
    """Write every part into a folder, which is made, and list what was written."""
    from planner.errors import SpecError
    from planner.specs.files import write_whole

    try:
        Path(output).mkdir(exist_ok=True)
    except OSError as error:
        raise SpecError.of(output, f"cannot be made a folder ({error.strerror}); choose another path") from None
    for part in found:
        path = Path(output) / part.name
        write_whole(str(path), part.text)
        if part.executable:
            path.chmod(path.stat().st_mode | 0o111)
        say(f"wrote {path}\n")


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
