"""``planner predict``: time and memory of a layout that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import (
    Format,
    FormatOption,
    Framework,
    GlobalBatch,
    GlobalBatchTokens,
    Headroom,
    JobFile,
    Optimizer,
    Precision,
    SequenceLength,
    TotalTokens,
    overrides,
)

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.job import Job
    from planner.domain.model import Model
    from planner.domain.plan import Plan

    Named = tuple[Plan, Cluster, Model, Job, tuple[str, ...]]


def predict(
    cluster: Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="Cluster, as for planner plan.")] = None,
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Model, as for planner plan.")] = None,
    layout: Annotated[
        str | None, typer.Option("--layout", metavar="TEXT", help='Such as "tp=4,pp=2,dp=8,mbs=1,gbs=512,seq=4096".')
    ] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="Plan file; CLUSTER and MODEL replace its own.")
    ] = None,
    job: JobFile = None,
    global_batch: GlobalBatch = None,
    global_batch_tokens: GlobalBatchTokens = None,
    sequence_length: SequenceLength = None,
    precision: Precision = None,
    framework: Framework = None,
    optimizer: Optimizer = None,
    headroom: Headroom = None,
    total_tokens: TotalTokens = None,
    form: FormatOption = Format.text,
) -> None:
    """Predict time and memory of a layout that you name.

    One that does not fit is an answer and no failure: the exit code is 0, and `fits` is no.
    """
    given = overrides(
        global_batch=global_batch,
        global_batch_tokens=global_batch_tokens,
        sequence_length=sequence_length,
        precision=precision,
        framework=framework,
        optimizer=optimizer,
        target=None,
        headroom=headroom,
        total_tokens=total_tokens,
    )
    from planner.cli.inputs import refuse_shared_stdin

    refuse_shared_stdin(cluster, model, plan, job)
    named = _of_layout(layout, plan, cluster, model, job, given)
    _print(named or _of_plan(str(plan), cluster, model, job, given), form)


def _of_layout(
    layout: str | None,
    plan: str | None,
    cluster: str | None,
    model: str | None,
    job: str | None,
    given: dict[str, object],
) -> Named | None:
    """Return what ``--layout`` names, or None where ``--plan`` is given instead.

    Raises:
        SpecError: neither or both are given, or a source is missing or wrong.
    """
    from planner.cli.inputs import read_inputs
    from planner.errors import SpecError
    from planner.parallelism import AXES
    from planner.pipeline import plan_from_layout
    from planner.specs.layout import parse_layout

    if (layout is None) == (plan is None):
        raise SpecError.of("", 'give either --layout "tp=4,pp=2,..." or --plan FILE')
    if layout is None:
        return None
    if cluster is None or model is None:
        raise SpecError.of(
            "--layout", "needs CLUSTER and MODEL before it, as in `planner predict CLUSTER MODEL --layout ...`"
        )
    found = parse_layout(layout, axes=tuple(axis.name for axis in AXES))
    for key, option, value in (
        ("global_batch", "gbs", found.gbs),
        ("sequence_length", "seq", found.seq),
        ("framework", "framework", found.framework),
    ):
        if value is not None and given.setdefault(key, value) != value:
            raise SpecError.of(
                "--layout", f"says {option}={value} and --{key.replace('_', '-')} says {given[key]}; keep one"
            )
    read_cluster, read_model, read_job, defaults = read_inputs(cluster, model, job, given)
    made, settled = plan_from_layout(found, read_cluster, read_model, read_job)
    changed = {
        "global_batch": settled.global_batch != read_job.global_batch,
        "sequence_length": settled.sequence != read_job.sequence,
    }
    kept = tuple(text for text in defaults if not changed.get(text.split(" ", 1)[0], False))
    return made, read_cluster, read_model, settled, kept


def _of_plan(plan: str, cluster: str | None, model: str | None, job: str | None, given: dict[str, object]) -> Named:
    """Return what a plan file says, with the user's cluster, model and job instead of its own.

    Raises:
        SpecError: a source is wrong.
    """
    from planner.cli.inputs import note, read_plan_file
    from planner.specs.cluster import read_cluster
    from planner.specs.job import job_record, read_job
    from planner.specs.model import read_model

    file = read_plan_file(plan)
    found_cluster = file.cluster if cluster is None else read_cluster(cluster)
    found_model = file.model if model is None else read_model(model, note=note)
    if job is not None:
        found_job, defaults = read_job(job, given, found_model, found_cluster)
        return file.plan, found_cluster, found_model, found_job, defaults
    own = {key: value for key, value in job_record(file.job).items() if key != "constraints"}
    if "global_batch_tokens" in given:
        own.pop("global_batch")
    found_job, defaults = read_job(None, {**own, **given}, found_model, found_cluster)
    return file.plan, found_cluster, found_model, found_job, defaults


def _print(named: Named, form: Format) -> None:
    """Predict and print."""
    from planner.pipeline import find_repairs, predict_plan
    from planner.pipeline.observed import glance
    from planner.report.prediction import prediction_text
    from planner.report.terminal import page_width, write
    from planner.report.to_json import dumped, prediction_document

    plan, cluster, model, job, defaults = named
    prediction, problems = predict_plan(plan, cluster, model, job)
    repairs = find_repairs(plan, cluster, model, job, prediction)
    if form is Format.text:
        parts = (plan, prediction, problems, cluster, model, job)
        step = glance(plan, cluster, model, job)
        page = prediction_text(*parts, step=step, defaults=defaults, repairs=repairs, width=page_width())
        write(page)
    else:
        write(dumped(prediction_document(plan, prediction, problems, cluster, model, job, repairs), form.value))
