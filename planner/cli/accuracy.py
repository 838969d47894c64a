"""``planner accuracy``: predictions against measured runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from planner.cli.options import Format, FormatOption, Headroom, share


def accuracy(
    runs: Annotated[list[str], typer.Argument(metavar="RUNS.csv...", help="Measured runs, one a row, or -.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Writes the rows with their predictions as CSV, or -."),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also by source, model and number of devices; json always has them.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="CLUSTER", help="Predicts runs on its devices with them, and as calibrated."),
    ] = None,
    framework: Annotated[
        str | None, typer.Option("--framework", metavar="NAME", help="Profile of runs that name no framework.")
    ] = None,
    headroom: Headroom = None,
    form: FormatOption = Format.text,
) -> None:
    """Compare predictions with measured runs.

    Runs that cannot be predicted are counted with the reason; the exit code is 0 all the same.
    """
    from planner.accuracy.judge import judge_runs
    from planner.accuracy.measures import measure
    from planner.accuracy.runs import read_runs
    from planner.accuracy.written import predictions_csv
    from planner.calibration.applied import on_cluster
    from planner.cli.inputs import refuse_shared_stdin
    from planner.cli.output import STDOUT, refuse_unwritable
    from planner.report.terminal import page_width, write
    from planner.specs.cluster import read_cluster
    from planner.specs.files import write_whole
    from planner.specs.job import HEADROOM

    refuse_unwritable(output)
    refuse_shared_stdin(*runs, cluster)
    left_free = HEADROOM if headroom is None else share(headroom, "--headroom")
    found_runs = [run if run.framework else replace(run, framework=framework or "") for run in read_runs(runs)]
    judged = judge_runs(found_runs, left_free, on_cluster(read_cluster(cluster)) if cluster else None)
    if output == STDOUT:
        write(predictions_csv(judged))
        return
    found = measure(judged, left_free)
    if form is Format.text:
        from planner.report.accuracy import accuracy_text

        write(accuracy_text(found, groups=groups, width=page_width()))
    else:
        from planner.report.accuracy_json import accuracy_document
        from planner.report.to_json import dumped

        write(dumped(accuracy_document(found), form.value))
    if output:
        write_whole(output, predictions_csv(judged))
