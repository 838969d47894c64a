"""``planner check``: judge plan files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, WRONG_INPUT, say
from planner.cli.options import Format, FormatOption, Headroom, share

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.prediction import Prediction
    from planner.errors import Problem, Repair
    from planner.specs.plan import PlanFile


@dataclass(frozen=True, slots=True)
class Judged:
    """A file, and what is to be said of it."""

    source: str
    file: PlanFile | None
    """None if it could not be read."""
    prediction: Prediction | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    repairs: tuple[Repair, ...] = ()
    """Changes with which it would fit."""

    @property
    def code(self) -> int:
        """Exit code of this file alone."""
        return WRONG_INPUT if self.file is None else PROBLEMS if self.problems else 0


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Plan files, or -.")],
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="CLUSTER", help="Whether the plans hold on this cluster instead.")
    ] = None,
    headroom: Headroom = None,
    form: FormatOption = Format.text,
) -> None:
    """Judge plan files, without trusting their figures.

    The exit code is 0 if all are good, 1 if one has problems, 2 if one cannot be read.
    """
    from planner.cli.inputs import refuse_shared_stdin
    from planner.report.terminal import write
    from planner.specs.cluster import read_cluster

    refuse_shared_stdin(*files, cluster)
    other = None if cluster is None else read_cluster(cluster)
    left_free = None if headroom is None else share(headroom, "--headroom")
    judged = []
    for source in files:
        judged.append(_judge(source, other, left_free))
        if form is Format.text:
            _tell(judged[-1])
    if form is not Format.text:
        from planner.report.to_json import dumped

        write(dumped({"format_version": "1.0", "files": [_record(one) for one in judged]}, form.value))
    code = max(one.code for one in judged)
    if code:
        raise typer.Exit(code)


def _judge(source: str, other: Cluster | None, headroom: float | None) -> Judged:
    """Return the judgement of one file, at another head-room if one is given.

    One that cannot be read is a judgement, too.
    """
    from planner.errors import SpecError
    from planner.specs.plan import read_plan

    try:
        file = read_plan(source)
    except SpecError as error:
        return Judged(source, None, None, error.problems, ())
    from planner.pipeline import find_repairs, judge, placed

    if headroom is not None:
        file = replace(file, job=replace(file.job, headroom=headroom))
    prediction, problems, notes = judge(file, other)
    repairs = find_repairs(*placed(file, other), file.model, file.job, prediction) if prediction else ()
    return Judged(source, file, prediction, problems, notes, repairs)


def _tell(one: Judged) -> None:
    from planner.report.plan import decision, speed
    from planner.report.pressure import warning_lines
    from planner.report.problems import check_text, problems_text, repair_lines
    from planner.report.terminal import page_width, write

    if one.file is None:
        say(problems_text(one.problems))
        return
    summary = [decision(one.file.plan), *([speed(one.prediction)] if one.prediction else [])]
    width = page_width()
    more = warning_lines(one.prediction, width - 2) if one.prediction else []
    more += repair_lines(one.repairs, width - 2) if one.repairs else []
    write(check_text(one.source, one.problems, one.notes, summary, width, more=more))


def _record(one: Judged) -> dict[str, object]:
    from planner.report.to_json import prediction_record, problem_records, repair_records, warning_records

    return {
        "file": one.source,
        "readable": one.file is not None,
        "good": one.code == 0,
        "problems": problem_records(one.problems),
        "notes": list(one.notes),
        "warnings": warning_records(one.prediction) if one.prediction else [],
        "repairs": repair_records(one.repairs),
        "prediction": prediction_record(one.file.plan, one.prediction) if one.file and one.prediction else None,
    }
