"""What the search is told of schedules that are given by their passes, against the replay."""

from __future__ import annotations

from itertools import product

import pytest

from pipelines import alike
from planner.schedules import SCHEDULES, Schedule, critical_paths, held_passes, open_microbatches, schedule
from planner.schedules.outline import MOST_ROUNDS, RATIOS

WALKED = [listed for listed in SCHEDULES if listed.orders is not None and listed.flushes]
each_schedule = pytest.mark.parametrize("listed", WALKED, ids=lambda one: one.name)


def differences(listed: Schedule, stages: int, microbatches: int) -> list[float]:
    """Return by how much each path's passes take longer than the replayed step of equal stages with free transfers."""
    found = []
    for path, times in zip(critical_paths(listed, stages, microbatches), RATIOS, strict=True):
        whole = tuple(float(time * listed.virtual_stages) for time in times)
        step = alike(listed, (stages, microbatches), whole).step_time  # type: ignore[arg-type]
        passes = path.forward * times.forward + path.input * times.input + path.weight * times.weight
        found.append(passes / step - 1)
    return found


@each_schedule
def test_paths_of_few_stages_are_exact(listed: Schedule) -> None:
    """A path takes as long as the step, for numbers of micro-batches that are walked."""
    for stages, microbatches in product((2, 3, 4, 6, 9, 12), (1, 2, 5, 8, 12, 16, 24)):
        if microbatches <= MOST_ROUNDS * stages and not listed.blocker(stages, microbatches):
            assert differences(listed, stages, microbatches) == pytest.approx([0.0] * len(RATIOS), abs=1e-3)


@each_schedule
@pytest.mark.parametrize(("stages", "rounds"), [(4, 5), (4, 12), (6, 8), (12, 8), (16, 3), (16, 8), (20, 4), (32, 2)])
def test_paths_of_many_are_told_by_few(listed: Schedule, stages: int, rounds: int) -> None:
    """Whole rounds of micro-batches beyond those that are walked: within 3% of the step."""
    assert differences(listed, stages, rounds * stages) == pytest.approx([0.0] * len(RATIOS), abs=3e-2)


@each_schedule
@pytest.mark.parametrize(
    ("stages", "microbatches"), [(32, 29), (25, 3), (25, 8), (18, 24), (6, 26), (28, 226), (13, 41), (32, 5), (20, 90)]
)
def test_paths_of_other_numbers_are_told_by_few(listed: Schedule, stages: int, microbatches: int) -> None:
    """Few or broken rounds of many stages: within 8% of the step, where two directions share them 10%."""
    if not listed.blocker(stages, microbatches):
        most = 0.10 if listed.name in {"chimera", "bitpipe"} else 0.08
        assert differences(listed, stages, microbatches) == pytest.approx([0.0] * len(RATIOS), abs=most)


@each_schedule
def test_what_ranks_hold_is_told_by_few(listed: Schedule) -> None:
    """As many passes as the order itself holds."""
    for stages, microbatches in ((2, 30), (3, 33), (4, 64), (8, 40), (16, 96)):
        if not listed.blocker(stages, microbatches):
            held = [listed.in_flight(rank, stages, microbatches) for rank in range(stages)]
            assert list(held_passes(listed, stages, microbatches)) == held


def test_open_by_hand() -> None:
    """ZB-H1 opens P, ZB-H2 2 P - 1, breadth-first all, Chimera half of P from each end."""
    assert open_microbatches(schedule("zb-h1"), 4, 100) == 4
    assert open_microbatches(schedule("zb-h2"), 4, 100) == 7
    assert open_microbatches(schedule("breadth-first"), 4, 100) == 100
    assert open_microbatches(schedule("chimera"), 4, 100) == 2


def test_paths_by_hand() -> None:
    """ZB-H1 with P = 4 and M = 8 takes M (F + I + W) + 3 (F + I - W); loops wrap once there and back."""
    path = critical_paths(schedule("zb-h1"), 4, 8)[0]
    assert (path.forward, path.input, path.weight, path.wraps) == (11.0, 11.0, 5.0, 0.0)
    looped = critical_paths(schedule("breadth-first", 2), 4, 4)[0]
    assert (looped.forward, looped.input, looped.weight, looped.wraps) == (11.0, 11.0, 11.0, 2.0)
