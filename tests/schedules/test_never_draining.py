"""Schedules that never drain: versions, staleness and predictions of weights, counted in the passes of long runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipelines import alike
from planner.schedules import SCHEDULES, Schedule, schedule
from planner.simulate import Event
from planner.simulate.events import COMPUTE, Durations, course, run

STAGES = (1, 2, 3, 4, 5, 8, 13)
STEPS = 6
"""Steps of a run in whose middle it is full."""
UNBROKEN = tuple(listed for listed in SCHEDULES if not listed.flushes)

each_unbroken = pytest.mark.parametrize("listed", UNBROKEN, ids=lambda listed: listed.name)


def full_run(num_stages: int, step: int) -> list[list[Event]]:
    """Return the passes of every rank in a run of several steps, all of them taking 1 s."""
    plain = schedule("pipedream")
    takes = Durations(
        passes={(kind, stage, 0): 1.0 for kind in "FB" for stage in range(num_stages)},
        ahead=[0.0] * num_stages,
        back=[0.0] * num_stages,
    )
    events = [one for one in run(course(plain, num_stages, STEPS * step), takes) if one.lane == COMPUTE]
    return [
        sorted((one for one in events if one.stage == rank), key=lambda one: one.start) for rank in range(num_stages)
    ]


def middle(step: int) -> Iterator[int]:
    """Yield the micro-batches of a step in the middle of a run."""
    yield from range(3 * step, 4 * step)


def at(passes: list[Event], name: str, micro_batch: int) -> Event:
    """Return one pass of a rank."""
    return next(one for one in passes if one.name == name and one.micro_batch == micro_batch)


def steps_done(passes: list[Event], time: float, step: int) -> int:
    """Return how many steps have gone back wholly on a rank by a time."""
    back = {one.micro_batch for one in passes if one.name == "B" and one.end <= time}
    return sum(set(range(number * step, (number + 1) * step)) <= back for number in range(STEPS))


@each_unbroken
def test_nothing_idles(listed: Schedule) -> None:
    """A step takes M (F + B + U) where each micro-batch has an update of U s, and else M (F + B) + U."""
    for stages in STAGES:
        for more in (0, 1, 7):
            shape = (stages, stages + more)
            observed = alike(listed, shape, sync=0.5)
            updates = shape[1] if listed.updates_each else 1
            assert observed.step_time == pytest.approx(3.0 * shape[1] + 0.5 * updates)
            assert observed.exposed_sync == pytest.approx((0.5 * updates,) * stages)
            assert observed.makespan == pytest.approx(3.0 * shape[1] + 0.5 * updates * listed.updates_each)
            assert list(observed.peak_in_flight) == [stages - rank for rank in range(stages)]


@pytest.mark.parametrize("name", ["pipedream", "spectrain"])
def test_updates_of_single_micro_batches_are_counted(name: str) -> None:
    """Staleness is the backward passes of other micro-batches between a micro-batch's two: Narayanan et al. 2019, 3.3.

    Each version that one of those in flight began with is kept, the newest among them.
    """
    listed = schedule(name)
    for stages in STAGES:
        ranks = full_run(stages, stages)
        for rank, passes in enumerate(ranks):
            shape = (rank, stages, stages)
            for one in middle(stages):
                span = passes[passes.index(at(passes, "F", one)) : passes.index(at(passes, "B", one))]
                between = [event for event in span if event.name == "B"]
                assert len(between) == listed.staleness(*shape)
            if name == "pipedream":
                assert listed.weight_versions(*shape) == len(between) + 1 == listed.in_flight(*shape)


def test_predictions_of_spectrain_reach_to_the_end_of_the_round_trip() -> None:
    """S is the updates of a rank by others until the micro-batch is back on rank 0, seen from each pass."""
    listed = schedule("spectrain")
    for stages in STAGES:
        ranks = full_run(stages, stages)
        for rank, passes in enumerate(ranks):
            for one in middle(stages):
                home = at(ranks[0], "B", one).end
                left = []
                for name in "FB":
                    begun = at(passes, name, one).start
                    others = (run for run in passes if run.name == "B" and run.micro_batch != one)
                    left.append(sum(begun < run.end <= home for run in others))
                assert tuple(left) == listed.predicted(rank, stages, stages)


@pytest.mark.parametrize(("stages", "step"), [(2, 2), (3, 5), (4, 4), (4, 16), (8, 8), (8, 11)])
def test_staleness_of_xpipe(stages: int, step: int) -> None:
    """Whether the step before has gone back on a rank when the first micro-batch of a step goes forward there."""
    for rank, passes in enumerate(full_run(stages, step)):
        begun = at(passes, "F", 3 * step).start
        stale = 3 - steps_done(passes, begun, step)
        assert schedule("xpipe").staleness(rank, stages, step) == stale


def test_predictions_of_xpipe() -> None:
    """Guan et al. 2019, for 4 ranks: with 4 micro-batches round(6/4), round(5.5/4), ... and round(3/4), round(3/4), ...

    With 16 the rounds are round(18/16) and round(15/16), which are both 1.
    """
    of = schedule("xpipe").predicted
    assert [of(rank, 4, 4) for rank in range(4)] == [(2, 1), (1, 1), (1, 1), (1, 1)]
    assert [of(rank, 4, 16) for rank in range(4)] == [(1, 1)] * 4
    assert of(0, 1, 4) == (0, 0)


@pytest.mark.parametrize(
    ("name", "versions", "stale", "predictions"),
    [
        ("pipedream-2bw", [2, 2, 2, 2], [1, 1, 1, 1], [0, 0, 0, 0]),
        ("pipedream", [4, 3, 2, 1], [3, 2, 1, 0], [0, 0, 0, 0]),
        ("spectrain", [2, 2, 2, 2], [3, 2, 1, 0], [1, 1, 2, 1]),
        ("xpipe", [2, 2, 2, 2], [1, 1, 1, 0], [2, 2, 2, 1]),
        ("1f1b", [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_four_ranks_by_hand(name: str, versions: list[int], stale: list[int], predictions: list[int]) -> None:
    """8 micro-batches. The last rank goes back at once, on what it went forward on: one prediction does for both."""
    listed, shapes = schedule(name), [(rank, 4, 8) for rank in range(4)]
    assert [listed.weight_versions(*shape) for shape in shapes] == versions
    assert [listed.staleness(*shape) for shape in shapes] == stale
    assert [listed.predictions(*shape) for shape in shapes] == predictions
    assert listed.updates(8) == (8 if name in {"pipedream", "spectrain"} else 1)


def test_a_single_stage_needs_no_predictions() -> None:
    """It holds its weights, which are always up to date."""
    for listed in (schedule("pipedream"), schedule("spectrain"), schedule("xpipe")):
        assert listed.weight_versions(0, 1, 4) == 1
        assert listed.staleness(0, 1, 4) == listed.predictions(0, 1, 4) == 0


@each_unbroken
def test_what_changes_is_said(listed: Schedule) -> None:
    """None is taken for a schedule that trains as usual, and a step fills the pipeline."""
    assert listed.changes_semantics
    assert listed.blocker(4, 3) == "needs 4 micro-batches or more, one a stage; there are 3"
    assert not listed.blocker(4, 4)
