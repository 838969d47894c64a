"""``planner show``: clusters, models and the catalogue, as the planner understands them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.command import Command
from planner.cli.options import ClusterSource, Format, FormatOption, ModelSource, SequenceLength, number

if TYPE_CHECKING:
    from planner.schedules import Schedule

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


@app.command("schedules", cls=Command)
def schedules(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only this one, with --stages its passes.")
    ] = None,
    stages: Annotated[int | None, typer.Option("--stages", metavar="P", min=1, help="Ranks of the pipeline.")] = None,
    microbatches: Annotated[
        int | None, typer.Option("--micro-batches", metavar="M", min=1, help="Of one step; default 2 P.")
    ] = None,
    chunks: Annotated[
        int, typer.Option("--vpp", metavar="V", min=0, help="Chunks of layers a rank; default the fewest.")
    ] = 0,
    group: Annotated[
        int,
        typer.Option("--vpp-group", metavar="N", min=0, help="Micro-batches that pass a chunk together; default P."),
    ] = 0,
    form: FormatOption = Format.text,
) -> None:
    """Show the pipeline schedules, or the passes of one, a line for each rank (comma-separated)."""
    from planner.errors import SpecError
    from planner.report.schedules import schedule_record, show_schedules
    from planner.report.staleness import weights_record
    from planner.report.terminal import page_width, write
    from planner.schedules import ANY_ORDER, SCHEDULES, cell, csv_text
    from planner.specs.catalog import frameworks

    if name is None or stages is None:
        found = (*SCHEDULES, ANY_ORDER) if name is None else (_schedule(name, chunks, group),)
        if form is Format.text:
            write(show_schedules(found, frameworks(), page_width()))
        else:
            _write({"schedules": [schedule_record(one, frameworks()) for one in found]}, form)
        return
    if name == ANY_ORDER.name:
        raise SpecError.of("--stages", f"{name} has passes in a plan alone; leave it out, or see order of a plan file")
    listed, batches = _schedule(name, chunks, group), microbatches or 2 * stages
    reason = listed.blocker(stages, batches)
    if reason:
        raise SpecError.of("--stages", f"{name} {reason}; change --stages or --micro-batches")
    if form is Format.text:
        write(csv_text(listed, stages, batches))
    else:
        ranks = [[cell(one) for one in passes] for passes in listed.passes(stages, batches)]
        held = [listed.held(rank, stages, batches) for rank in range(stages)]
        stale = [weights_record(listed, rank, stages, batches) for rank in range(stages)]
        weights = {"weights": stale} if listed.changes_semantics else {}
        _write({**schedule_record(listed, frameworks()), "ranks": ranks, "in_flight": held, **weights}, form)


def _schedule(name: str, chunks: int, group: int) -> Schedule:
    """Return a schedule that a user names."""
    from planner.errors import SpecError
    from planner.schedules import ANY_ORDER, SCHEDULES, schedule

    if name == ANY_ORDER.name:
        return ANY_ORDER
    names = [listed.name for listed in (*SCHEDULES, ANY_ORDER)]
    if name not in names:
        raise SpecError.of("NAME", f"there is no schedule {name}; known are {', '.join(names)}")
    listed = schedule(name, chunks, group)
    if chunks == 1 and listed.with_chunks:
        raise SpecError.of("--vpp", f"{name} needs 2 or more chunks a rank; leave --vpp out for the fewest")
    if chunks and listed.virtual_stages != chunks:
        raise SpecError.of("--vpp", f"{name} has {listed.virtual_stages} a rank, not {chunks}; leave --vpp out")
    return listed


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
