"""``planner import``: foreign descriptions to spec files."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.command import Command
from planner.cli.options import GlobalBatch, ModelSource, SequenceLength, number

app = typer.Typer(help="Turn a foreign description into a spec file.", no_args_is_help=True)


@app.callback()
def importing() -> None:
    """Turn a foreign description into a spec file."""


@app.command("model", cls=Command)
def model(
    source: ModelSource,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default it is printed.")
    ] = "-",
) -> None:
    """Turn a Hugging Face config.json into a model file."""
    from planner.cli.inputs import note
    from planner.cli.output import write_record
    from planner.specs.model import model_record, read_model

    write_record(model_record(read_model(source, note=note)), output)


@app.command("plan", cls=Command)
def plan(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Launch script or configuration, or -.")],
    cluster: Annotated[str, typer.Option("--cluster", metavar="CLUSTER", help="Where it runs.")],
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="What it trains, if it does not say.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--from", metavar="KIND", help="What the file is; by default it is recognised.")
    ] = None,
    global_batch: GlobalBatch = None,
    sequence_length: SequenceLength = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default it is printed.")
    ] = "-",
) -> None:
    """Turn a launch configuration into a plan file."""
    from planner.cli.inputs import note, refuse_shared_stdin
    from planner.cli.output import write_record
    from planner.errors import SpecError
    from planner.pipeline import predict_plan
    from planner.pipeline.given import form_of, imported
    from planner.specs.cluster import read_cluster
    from planner.specs.files import read_text
    from planner.specs.model import read_model
    from planner.specs.plan import plan_record

    refuse_shared_stdin(source, cluster, model)
    text, origin = read_text(source)
    form = form_of(text, origin, kind)
    if form is None:
        raise SpecError.of(origin, "is no configuration of a known kind; name it with --from")
    given = {"global_batch": number(global_batch), "sequence_length": number(sequence_length)}
    found = imported(
        text,
        origin,
        form,
        read_cluster(cluster),
        None if model is None else read_model(model, note=note),
        {key: value for key, value in given.items() if value is not None},
    )
    for sentence in found.notes:
        note(sentence)
    file = found.file
    prediction, problems = predict_plan(file.plan, file.cluster, file.model, file.job)
    for problem in problems:
        note(str(problem))
    write_record(plan_record(file.plan, file.cluster, file.model, file.job, None, prediction), output)
