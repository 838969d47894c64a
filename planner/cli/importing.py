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


Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default it is printed.")
]


@app.command("model", cls=Command)
def model(source: ModelSource, output: Output = "-") -> None:
    """Turn a Hugging Face config.json into a model file."""
    from planner.cli.inputs import note
    from planner.cli.output import write_record
    from planner.specs.model import model_record, read_model

    write_record(model_record(read_model(source, note=note)), output)


@app.command("cluster", cls=Command)
def cluster(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DUMP...", help="Output of nvidia-smi, rocm-smi, scontrol, kubectl and others; - is stdin."
        ),
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Ask the tools of this machine instead.")] = False,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=1, max=10**6, help="Nodes like the dumped one; default 1.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network", metavar="TEXT", help="Of a node: 8x400 (adapters x Gbit/s) or a name such as ib-ndr."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="What those devices are that no dump names."),
    ] = None,
    instance: Annotated[
        str | None, typer.Option("--instance", metavar="NAME", help="Instance type of a catalogue of prices.")
    ] = None,
    output: Output = "-",
) -> None:
    """Turn what a machine, a scheduler or a cloud prints about itself into a cluster file."""
    from planner.cli.inputs import note, refuse_shared_stdin
    from planner.cli.local import local_dumps
    from planner.cli.output import refuse_unwritable, write_record
    from planner.errors import SpecError
    from planner.specs.discovery import Told, cluster_from_dumps

    named = sources or []
    if not named and not local:
        raise SpecError.of("", "name one dump or more, or give --local to ask the tools of this machine")
    refuse_shared_stdin(*named)
    refuse_unwritable(output)
    texts = [*(local_dumps() if local else ()), *_texts(named)]
    told = Told(nodes=nodes, network=network, device=device, instance=instance)
    write_record(cluster_from_dumps(texts, told, note), output)


def _texts(sources: list[str]) -> list[tuple[str, str]]:
    """Return text and name of each dump.

    Raises:
        SpecError: with the problems of all files.
    """
    from planner.errors import Problem, SpecError
    from planner.machines import MAX_BYTES
    from planner.specs.files import read_text

    problems: list[Problem] = []

    def read(source: str) -> tuple[str, str]:
        try:
            return read_text(source, MAX_BYTES)
        except SpecError as error:
            problems.extend(error.problems)
            return "", source

    found = [read(source) for source in sources]
    if problems:
        raise SpecError(problems)
    return found


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
    output: Output = "-",
) -> None:
    """Turn a launch configuration into a plan file."""
    from planner.cli.inputs import note, refuse_shared_stdin
    from planner.cli.output import write_record
    from planner.configurations import FORMS
    from planner.configurations.engine import form_of
    from planner.errors import SpecError
    from planner.pipeline import predict_plan
    from planner.pipeline.given import imported
    from planner.specs.cluster import read_cluster
    from planner.specs.files import read_text
    from planner.specs.model import read_model
    from planner.specs.plan import plan_record

    refuse_shared_stdin(source, cluster, model)
    text, origin = read_text(source)
    form = form_of(FORMS, text, origin, kind)
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
