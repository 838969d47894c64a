"""``planner plan``: search for the fastest plan that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import INFEASIBLE, INTERRUPTED, say
from planner.cli.options import (
    Constraints,
    Format,
    FormatOption,
    Framework,
    Gap,
    GlobalBatch,
    GlobalBatchTokens,
    Headroom,
    JobFile,
    Optimizer,
    Precision,
    ScheduleName,
    SequenceLength,
    Target,
    TimeLimit,
    TotalTokens,
    overrides,
)

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.job import Job
    from planner.domain.model import Model
    from planner.domain.prediction import Outcome
    from planner.report.difference import Side
    from planner.specs.plan import PlanFile


def plan(
    cluster: Annotated[
        str | None, typer.Argument(metavar="CLUSTER", help="Cluster file, - or a one-liner: 8x8:h100-sxm-80gb.")
    ] = None,
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Model file, - or a Hugging Face config.json.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="FILE", help="Plan the job of this plan, launch script or configuration."),
    ] = None,
    on: Annotated[
        str | None, typer.Option("--cluster", metavar="CLUSTER", help="With --like: where, instead of CLUSTER.")
    ] = None,
    trained: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="With --like: what is trained, instead of MODEL.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan file; - prints it instead.")
    ] = None,
    job: JobFile = None,
    global_batch: GlobalBatch = None,
    global_batch_tokens: GlobalBatchTokens = None,
    sequence_length: SequenceLength = None,
    precision: Precision = None,
    framework: Framework = None,
    optimizer: Optimizer = None,
    target: Target = None,
    headroom: Headroom = None,
    gap: Gap = None,
    time_limit: TimeLimit = None,
    total_tokens: TotalTokens = None,
    schedule: ScheduleName = None,
    constraint: Constraints = None,
    references: Annotated[
        bool, typer.Option("--references/--no-references", help="Compute what puts the plan in context.")
    ] = True,
    form: FormatOption = Format.text,
) -> None:
    """Find the fastest plan that fits, with a proof of how good it is."""
    from planner.cli.inputs import read_inputs, read_like
    from planner.cli.output import refuse_unwritable
    from planner.errors import SpecError

    refuse_unwritable(output)
    given = overrides(
        global_batch=global_batch,
        global_batch_tokens=global_batch_tokens,
        sequence_length=sequence_length,
        precision=precision,
        framework=framework,
        optimizer=optimizer,
        target=target,
        headroom=headroom,
        gap=gap,
        time_limit=time_limit,
        total_tokens=total_tokens,
        constraints=constraint,
        schedule=schedule,
    )
    old: PlanFile | None = None
    if like is not None:
        for option, one, other in (("--cluster", on, cluster), ("--model", trained, model)):
            if one is not None and other is not None:
                raise SpecError.of(option, f"is {one!r}, and {other!r} is given besides; keep one")
        found_cluster, found_model, found_job, defaults, old = read_like(
            like, on or cluster, trained or model, job, given
        )
    elif cluster is None or model is None or on is not None or trained is not None:
        raise SpecError.of(
            "", "give CLUSTER and MODEL, as in `planner plan 8x8:h100-sxm-80gb model.yaml`, or --like FILE"
        )
    else:
        found_cluster, found_model, found_job, defaults = read_inputs(cluster, model, job, given)
    outcome = _search(found_cluster, found_model, found_job, form, references=references)
    interrupted = outcome.search.status == "interrupted"
    _print(outcome, found_cluster, found_model, found_job, defaults, form, output, (str(like), old) if old else None)
    if interrupted:
        kept = f"; {output} is left as it was" if output and output != "-" else ""
        say(f"planner: interrupted, this is the best plan so far{kept}\n")
        raise typer.Exit(INTERRUPTED)


def _search(cluster: Cluster, model: Model, job: Job, form: Format, *, references: bool) -> Outcome:
    """Search with progress on a terminal; that there is no plan is printed here where a program reads it."""
    from planner.cli.progress import progress
    from planner.errors import NoFeasiblePlan
    from planner.pipeline import make_plan
    from planner.report.terminal import write
    from planner.report.to_json import dumped, no_plan_document

    reporter = progress()
    try:
        return make_plan(cluster, model, job, references=references, reporter=reporter)
    except NoFeasiblePlan as error:
        if form is Format.text:
            raise
        write(dumped(no_plan_document(error), form.value))
        raise typer.Exit(INFEASIBLE) from None
    finally:
        if reporter:
            reporter.clear()


def _print(
    outcome: Outcome,
    cluster: Cluster,
    model: Model,
    job: Job,
    defaults: tuple[str, ...],
    form: Format,
    output: str | None,
    old: tuple[str, PlanFile] | None = None,
) -> None:
    """Print what was found, and how it differs from an old plan; then write the plan file, unless only it is wanted."""
    from planner.cli.inputs import note
    from planner.cli.output import STDOUT, write_record
    from planner.pipeline import runs_on
    from planner.pipeline.written import export_refusal
    from planner.report.plan import plan_text
    from planner.report.terminal import page_width, write
    from planner.report.to_json import dumped, plan_document
    from planner.specs.plan import plan_record

    names = runs_on(outcome.plan, cluster)
    record = plan_record(outcome.plan, cluster, model, job, outcome.certificate, outcome.prediction)
    if output == STDOUT:
        write_record(record, STDOUT, as_json=form is Format.json)
        return
    if form is Format.text:
        hint = _hint(output)
        page = plan_text(outcome, cluster, model, job, defaults=defaults, runs_on=names, hint=hint, width=page_width())
        write(page)
        if old:
            from planner.report.difference import difference_text

            write(
                "\n"
                + difference_text((old[0], "this plan"), *_sides(outcome, cluster, model, job, old[1]), page_width())
            )
    else:
        document = plan_document(outcome, cluster, model, job, names)
        if old:
            from planner.report.difference import difference_document

            document["difference"] = difference_document(*_sides(outcome, cluster, model, job, old[1]))
        write(dumped(document, form.value))
    if output and outcome.search.status != "interrupted":
        write_record(record, output)
    if refusal := export_refusal(outcome.plan, cluster, model, job):
        note(f"{job.target} can run this plan, but export cannot write it: {refusal}")


def _sides(outcome: Outcome, cluster: Cluster, model: Model, job: Job, old: PlanFile) -> tuple[Side, Side]:
    """Return the old plan, and the one that was found."""
    from planner.cli.diff import side
    from planner.report.difference import Side

    now = Side(plan=outcome.plan, cluster=cluster, model=model, job=job, prediction=outcome.prediction)
    return side(old), now


def _hint(output: str | None) -> str:
    """Return what to type next."""
    import shlex

    if output:
        return f"planner explain {shlex.quote(output)}, planner check {shlex.quote(output)}"
    return "-o plan.yaml keeps this plan; then planner explain plan.yaml tells why it is as it is"
