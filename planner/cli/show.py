"""``planner show``: clusters, models and the catalogue, as the planner understands them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from planner.cli.command import Command
from planner.cli.options import ClusterSource, Format, FormatOption, ModelSource, SequenceLength, number

app = typer.Typer(help="Look at a spec or at the catalogue.", no_args_is_help=True)


@app.command("cluster", cls=Command)
def cluster(source: ClusterSource, form: FormatOption = Format.text) -> None:
    """Show the groups, links and totals of a cluster."""
    from planner.specs.cluster import cluster_record, read_cluster

    found = read_cluster(source)
    if form is Format.text:
        from planner.report.show import show_cluster
        from planner.report.terminal import page_width, write

        write(show_cluster(found, page_width()))
    else:
        _write(cluster_record(found), form)


@app.command("model", cls=Command)
def model(source: ModelSource, sequence_length: SequenceLength = None, form: FormatOption = Format.text) -> None:
    """Show the layers, parameters and FLOP of a model."""
    from planner.cli.inputs import note
    from planner.errors import SpecError
    from planner.specs.model import model_record, read_model

    found = read_model(source, note=note)
    sequence = number(sequence_length) if sequence_length is not None else min(4096, found.max_sequence or 4096)
    if not isinstance(sequence, int) or sequence < 1:
        raise SpecError.of("--sequence-length", f"should be a whole number of at least 1, not {sequence_length!r}")
    if form is Format.text:
        from planner.report.show import show_model
        from planner.report.terminal import page_width, write

        write(show_model(found, sequence, page_width()))
    else:
        figures = {"parameters": found.parameters, "flops_per_sample": float(found.flops_per_sample(sequence))}
        _write({**model_record(found), **figures, "sequence_length": sequence}, form)


@app.command("devices", cls=Command)
def devices(form: FormatOption = Format.text) -> None:
    """Show the catalogue of devices."""
    from planner.specs import catalog

    if form is Format.text:
        from planner.report.show import show_devices
        from planner.report.terminal import write

        write(show_devices(catalog.devices()))
    else:
        _write({"devices": [_plain(row) for row in catalog.device_rows()]}, form)


@app.command("frameworks", cls=Command)
def frameworks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one, with its source.")] = None,
    form: FormatOption = Format.text,
) -> None:
    """Show what each framework can carry."""
    from planner.specs import catalog

    found = catalog.frameworks() if name is None else (catalog.framework(name),)
    if form is Format.text:
        from planner.report.show import show_frameworks
        from planner.report.terminal import page_width, write

        write(show_frameworks(found, page_width(), sources=name is not None))
    else:
        _write({"frameworks": [_plain(one) for one in found]}, form)


@app.command("optimizers", cls=Command)
def optimizers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one, with its source.")] = None,
    form: FormatOption = Format.text,
) -> None:
    """Show what each optimizer recipe keeps and moves for a parameter."""
    from planner.specs import catalog

    found = catalog.optimizers() if name is None else (catalog.optimizer(name),)
    if form is Format.text:
        from planner.report.show import show_optimizers
        from planner.report.terminal import page_width, write

        write(show_optimizers(found, page_width(), sources=name is not None))
    else:
        _write({"optimizers": [_plain(one) for one in found]}, form)


def _plain(value: Any) -> Any:
    """Return a frozen value of the catalogue as plain data; pairs become a mapping."""
    from dataclasses import asdict

    record = asdict(value)
    device = record.get("device")
    if isinstance(device, dict):
        for key in ("peak_flops", "efficiencies"):
            device[key] = dict(device[key])
    return record


def _write(record: Mapping[str, Any], form: Format) -> None:
    from planner.report.terminal import write
    from planner.report.to_json import dumped

    write(dumped(record, form.value))
