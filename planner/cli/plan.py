"""``planner plan``: search for the fastest plan that fits."""

from __future__ import annotations

from typing import Annotated

import typer

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
    watched: Annotated[
        bool, typer.Option("--watch", help="Plan again whenever one of the files changes, until Ctrl-C.")
    ] = False,
    form: FormatOption = Format.text,
) -> None:
    """Find the fastest plan that fits, with a proof of how good it is."""
    from planner.cli.output import refuse_unwritable
    from planner.cli.planning import Request, plan_once
    from planner.cli.watch import watch
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
    if like is not None:
        for option, one, other in (("--cluster", on, cluster), ("--model", trained, model)):
            if one is not None and other is not None:
                raise SpecError.of(option, f"is {one!r}, and {other!r} is given besides; keep one")
    elif cluster is None or model is None or on is not None or trained is not None:
        raise SpecError.of(
            "", "give CLUSTER and MODEL, as in `planner plan 8x8:h100-sxm-80gb model.yaml`, or --like FILE"
        )
    request = Request(
        cluster=on or cluster,
        model=trained or model,
        like=like,
        job=job,
        given=given,
        references=references,
        form=form,
        output=output,
    )
    if watched:
        watch(request)
    else:
        plan_once(request)
