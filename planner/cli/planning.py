"""What ``planner plan`` does once: read, search, and show what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from planner.cli.command import INFEASIBLE, INTERRUPTED, failed, say
from planner.cli.options import Format

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.job import Job
    from planner.domain.model import Model
    from planner.domain.prediction import Outcome
    from planner.domain.progress import Reporter
    from planner.errors import CannotExpress, NoFeasiblePlan, NoPlanInTime, SpecError
    from planner.report.difference import Side
    from planner.specs.plan import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asks for."""

    cluster: str | None
    model: str | None
    like: str | None
    """What to plan like; cluster and model are given where it is None."""
    job: str | None
    given: Mapping[str, object]
    """Key of the job -> value of the option."""
    references: bool
    form: Format
    output: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What stands in the files that a request names."""

    cluster: Cluster
    model: Model
    job: Job
    defaults: tuple[str, ...]
    """A sentence for each value of the job that is a default."""
    old: PlanFile | None
    """The plan that is planned like, if it is one."""


def plan_once(request: Request) -> None:
    """Read, search and show.

    Raises:
        Exit: that there is no plan was told, or the search was interrupted.
        SpecError: with the problems of the files.
        NoPlanInTime: no plan was found in time.

    """
    from planner.cli.progress import progress
    from planner.errors import NoFeasiblePlan

    try:
        with progress() as reporter:
            inputs = read(request, reporter)
            outcome = find(request, inputs, reporter)
    except NoFeasiblePlan as error:
        raise typer.Exit(told(request, error)) from None
    show(request, inputs, outcome)
    end_if_interrupted(request, outcome)


def read(request: Request, reporter: Reporter) -> Inputs:
    """Return what stands in the files.

    Raises:
        SpecError: with their problems.

    """
    from planner.cli.inputs import read_inputs, read_like
    from planner.domain.progress import Standing

    reporter.progress(Standing(phase="reading"))
    old: PlanFile | None = None
    if request.like is not None:
        cluster, model, job, defaults, old = read_like(
            request.like, request.cluster, request.model, request.job, request.given
        )
    else:
        assert request.cluster is not None
        assert request.model is not None
        cluster, model, job, defaults = read_inputs(request.cluster, request.model, request.job, request.given)
    return Inputs(cluster=cluster, model=model, job=job, defaults=defaults, old=old)


def find(request: Request, inputs: Inputs, reporter: Reporter) -> Outcome:
    """Search for the plan.

    Raises:
        NoFeasiblePlan: proved that there is none.
        NoPlanInTime: none was found in time.
        SpecError: the inputs do not go together.

    """
    from planner.pipeline import make_plan

    return make_plan(inputs.cluster, inputs.model, inputs.job, references=request.references, reporter=reporter)


def told(request: Request, error: SpecError | NoFeasiblePlan | NoPlanInTime | CannotExpress, lead: str = "") -> int:
    """Tell why there is no plan, and return the exit code; programs read on standard output that none fits.

    Args:
        request: what was asked.
        error: what came of it.
        lead: what stands before the document on standard output.

    """
    from planner.errors import NoFeasiblePlan
    from planner.report.terminal import write
    from planner.report.to_json import dumped, no_plan_document

    if request.form is Format.text or not isinstance(error, NoFeasiblePlan):
        return failed(error)
    write(lead + dumped(no_plan_document(error), request.form.value))
    return INFEASIBLE


def show(request: Request, inputs: Inputs, outcome: Outcome, lead: str = "") -> None:
    """Print what was found, after `lead`, and how it differs from an old plan; then write the plan file."""
    from planner.cli.inputs import note
    from planner.cli.output import STDOUT, write_record
    from planner.pipeline.written import export_refusals
    from planner.report.terminal import write
    from planner.specs.plan import plan_record

    parts = (inputs.cluster, inputs.model, inputs.job)
    record = plan_record(outcome.plan, *parts, outcome.certificate, outcome.prediction)
    if request.output == STDOUT:
        write_record(record, STDOUT, as_json=request.form is Format.json)
        return
    shown = _page if request.form is Format.text else _document
    write(lead + shown(request, inputs, outcome))
    if request.output and outcome.search.status != "interrupted":
        write_record(record, request.output)
    if refused := export_refusals(outcome.plan, *parts):
        note(f"no export for {inputs.job.target} can write this plan")
        for text in refused:
            note(text)


def end_if_interrupted(request: Request, outcome: Outcome) -> None:
    """End with the exit code of an interrupt if the search was interrupted.

    Raises:
        Exit: it was.

    """
    if outcome.search.status != "interrupted":
        return
    kept = f"; {request.output} is left as it was" if request.output not in {None, "-"} else ""
    say(f"planner: interrupted, this is the best plan so far{kept}\n")
    raise typer.Exit(INTERRUPTED)


def found_side(inputs: Inputs, outcome: Outcome) -> Side:
    """Return the plan that was found as one side of a comparison."""
    from planner.report.difference import Side

    return Side(
        plan=outcome.plan,
        cluster=inputs.cluster,
        model=inputs.model,
        job=inputs.job,
        prediction=outcome.prediction,
    )


def _page(request: Request, inputs: Inputs, outcome: Outcome) -> str:
    """Return the report."""
    from planner.cli.diff import side
    from planner.pipeline import runs_on
    from planner.pipeline.observed import glance
    from planner.report.difference import difference_text
    from planner.report.plan import plan_text
    from planner.report.terminal import page_width

    page = plan_text(
        outcome,
        inputs.cluster,
        inputs.model,
        inputs.job,
        step=glance(outcome.plan, inputs.cluster, inputs.model, inputs.job),
        defaults=inputs.defaults,
        runs_on=runs_on(outcome.plan, inputs.cluster),
        hint=_hint(request.output),
        width=page_width(),
    )
    if inputs.old is None:
        return page
    names = (str(request.like), "this plan")
    return f"{page}\n{difference_text(names, side(inputs.old), found_side(inputs, outcome), page_width())}"


def _document(request: Request, inputs: Inputs, outcome: Outcome) -> str:
    """Return the report for programs."""
    from planner.cli.diff import side
    from planner.pipeline import runs_on
    from planner.report.difference import difference_document
    from planner.report.to_json import dumped, plan_document

    names = runs_on(outcome.plan, inputs.cluster)
    document = plan_document(outcome, inputs.cluster, inputs.model, inputs.job, names)
    if inputs.old is not None:
        document["difference"] = difference_document(side(inputs.old), found_side(inputs, outcome))
    return dumped(document, request.form.value)


def _hint(output: str | None) -> str:
    """Return what to type next."""
    import shlex

    if output:
        return f"planner explain {shlex.quote(output)}, planner check {shlex.quote(output)}"
    return "-o plan.yaml keeps this plan; then planner explain plan.yaml tells why it is as it is"
