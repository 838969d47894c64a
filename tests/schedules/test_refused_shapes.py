"""What a schedule cannot run is refused wherever it is asked for: as a layout, in a plan, on the command line."""

from __future__ import annotations

from itertools import product

import pytest
from typer.testing import CliRunner

import builders
from planner.checks import Context, run_checks
from planner.cli import app
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import SpecError
from planner.pipeline import plan_from_layout
from planner.schedules import SCHEDULES, Schedule, schedule
from planner.specs.layout import Layout

STAGES, BATCHES = range(1, 17), range(1, 65)
MODEL = builders.model(32)
VARIANTS = [listed for listed in SCHEDULES if any(listed.blocker(*shape) for shape in product(STAGES, BATCHES))]

each_schedule = pytest.mark.parametrize("listed", VARIANTS, ids=lambda one: one.name)


def refused(listed: Schedule) -> list[tuple[int, int, str]]:
    """Return the (stages, micro-batches) that a schedule cannot run, and why."""
    reasons = ((*shape, listed.blocker(*shape)) for shape in product(STAGES, BATCHES))
    return [one for one in reasons if one[2]]


def test_who_refuses_something() -> None:
    """The others run on any number of ranks, with any number of micro-batches."""
    assert [listed.name for listed in VARIANTS] == [
        "interleaved",
        "interleaved-zb",
        "dualpipe",
        "dualpipev",
        "chimera",
        "bitpipe",
        "pipedream-2bw",
        "pipedream",
        "spectrain",
        "xpipe",
    ]
    assert not any(schedule("breadth-first", chunks).blocker(1, 1) for chunks in (2, 8))


@each_schedule
def test_as_a_layout(listed: Schedule) -> None:
    """With the reason that the schedule gives."""
    for stages, microbatches, reason in refused(listed):
        layout = Layout(pp=stages, vpp=listed.virtual_stages, dp=1, gbs=microbatches, schedule=listed.name)
        close = builders.cluster(builders.group(per_node=stages))
        with pytest.raises(SpecError) as caught:
            plan_from_layout(layout, close, MODEL, builders.job())
        assert str(caught.value) == f"--layout: schedule={listed.name} {reason}; change pp, gbs, mbs or dp"


@each_schedule
def test_in_a_plan(listed: Schedule) -> None:
    """A plan that someone wrote, or changed, is checked before it is predicted or exported."""
    for stages, microbatches, reason in refused(listed):
        made = Plan(
            stages=(Stage(group="chips", first_layer=0, last_layer=1, strategy=Strategy()),) * stages,
            schedule=listed.name,
            num_replicas=1,
            micro_batch=1,
            num_microbatches=microbatches,
            zero_stage=0,
            virtual_stages=listed.virtual_stages,
        )
        context = Context(plan=made, cluster=builders.cluster(), model=MODEL, job=builders.job())
        (problem,) = run_checks(context, ["schedule"])
        assert (problem.place, problem.message) == ("schedule", f"is {listed.name}, which {reason}")


@each_schedule
def test_on_the_command_line(listed: Schedule) -> None:
    """`show schedules` prints no passes that could not run."""
    stages, microbatches, reason = refused(listed)[-1]
    asked = ["show", "schedules", listed.name, "--stages", str(stages), "--micro-batches", str(microbatches)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert f"{listed.name} {reason}; change --stages or --micro-batches" in " ".join(result.output.split())
