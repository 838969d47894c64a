"""``planner calibrate``: constants of a machine from runs on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from planner.calibration.calibrate import Machine
    from planner.calibration.fit import Fit
    from planner.domain.cluster import Device
    from planner.domain.framework import Framework


def calibrate(
    runs: Annotated[list[str], typer.Argument(metavar="RUNS.csv...", help="Measured runs, one a row, or -.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the cluster file; - prints it instead.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="CLUSTER", help="What the runs ran on; only its figures change.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="Use only the runs on this device.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option("--framework", metavar="NAME", help="Use only the runs with this framework's profile.")
    ] = None,
    flagged: Annotated[bool, typer.Option("--flagged", help="Use runs with a flag, too.")] = False,
    form: FormatOption = Format.text,
) -> None:
    """Fit a few constants of a machine to measured runs.

    What does not predict unseen runs better than the catalogue's figures is not kept.
    """
    from planner.accuracy.runs import read_runs
    from planner.calibration.calibrate import calibrate as calibrated
    from planner.cli.inputs import refuse_shared_stdin
    from planner.cli.output import STDOUT, refuse_unwritable, write_record
    from planner.report.terminal import page_width, write

    refuse_unwritable(output)
    refuse_shared_stdin(*runs, cluster)
    names = _names(device, framework)
    machine = None if cluster is None else _machine(cluster)
    found = calibrated(read_runs(runs), machine, device=names[0], framework=names[1], flagged=flagged)
    _warn(found.fit, machine)
    if output == STDOUT:
        write_record(found.record, STDOUT, as_json=form is Format.json)
        return
    if form is Format.text:
        from planner.report.calibration import calibration_text

        write(calibration_text(found.fit, kept=output is not None, width=page_width()))
    else:
        from planner.report.calibration import calibration_document
        from planner.report.to_json import dumped

        write(dumped(calibration_document(found.fit, found.record), form.value))
    if output:
        write_record(found.record, output)


def _names(device: str | None, framework: str | None) -> tuple[str, str]:
    """Return the names of device and framework as the catalogue spells them, empty where none is given.

    Raises:
        SpecError: the catalogue has no such device or framework.
    """
    from planner.specs import catalog

    return (
        _name("--device", device, catalog.device) if device else "",
        _name("--framework", framework, catalog.framework) if framework else "",
    )


def _name(option: str, name: str, lookup: Callable[[str], Device | Framework]) -> str:
    """Return a name as the catalogue spells it.

    Raises:
        SpecError: the catalogue does not know it.
    """
    from planner.errors import SpecError

    try:
        return lookup(name).name
    except SpecError as error:
        raise SpecError.of(option, error.problems[0].message) from None


def _machine(source: str) -> Machine:
    """Return the cluster that the runs ran on."""
    from planner.calibration.calibrate import Machine
    from planner.specs.cluster import read_written_cluster

    cluster, record = read_written_cluster(source)
    return Machine(origin=source, cluster=cluster, record=record)


def _warn(fit: Fit, machine: Machine | None) -> None:
    """Tell of another calibration that is replaced, and of values that are as far from their priors as they may be."""
    from planner.cli.inputs import note

    earlier = machine.cluster.calibration if machine else None
    if earlier and (earlier.framework, earlier.device) != (fit.rows.framework, fit.rows.device):
        note(f"replaces the calibration on {earlier.rows:,} runs of {earlier.framework} on {earlier.device}")
    for one in fit.constants:
        if one.at_bound:
            note(
                f"{one.constant.key} ended at its bound, {one.value:g}: it may stand for something else that is slow; "
                "look at the runs before you plan with it"
            )
