"""Idle shares that others computed from measured passes, against the replay of the same passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.schedules import schedule
from planner.simulate import Replay, StageTimes, replay, replay_orders

ROWS = yaml.safe_load(Path(__file__).with_name("published_bubbles.yaml").read_text(encoding="utf-8"))["rows"]

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['microbatches']}")


def longest(observed: Replay) -> float:
    """Return the longest time of a stage from its first pass to its last."""
    return max(end - start for start, end in zip(observed.start, observed.finish, strict=True))


def work(row: dict[str, Any]) -> float:
    """Return [ms] what a stage works in a step."""
    times = row["times"]
    found: float = row["microbatches"] * (times["forward"] + times["input"] + times["weight"])
    return found


@each_row
@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "zb-h2"])
def test_a_published_share_is_replayed_to_the_last_digit(row: dict[str, Any], name: str) -> None:
    """All 36 figures of the table."""
    listed, times, stages = schedule(name), row["times"], row["stages"]
    took = StageTimes(
        forward=times["forward"], backward=times["input"] + times["weight"], weight=times["weight"], sync=0.0
    )
    runs = {place: took for hosted in listed.hosted(stages) for place in hosted}
    links = {(one, one + way): times["transfer"] for one in range(stages) for way in (-1, 1)}
    observed = replay_orders(listed, runs, links, [0.0] * stages, row["microbatches"])
    assert 1 - work(row) / longest(observed) == pytest.approx(row["idle"][name], abs=0.00006)


@each_row
def test_interleaved_pipelines_wait_for_one_round_of_transfers_more(row: dict[str, Any]) -> None:
    """P transfers, under half a percent of a step: one way round that the authors' figures are without."""
    times, stages, chunks = row["times"], row["stages"], row["chunks"]
    number = stages * chunks
    backward = times["input"] + times["weight"]
    hops = [times["transfer"]] * (number - 1)
    observed = replay(
        schedule("interleaved", chunks),
        [times["forward"] / chunks] * number,
        [backward / chunks] * number,
        hops,
        hops,
        [0.0] * stages,
        row["microbatches"],
    )
    published = work(row) / (1 - row["idle"]["interleaved"])
    rounding = 0.00006 * published**2 / work(row)
    assert longest(observed) - published == pytest.approx(stages * times["transfer"], abs=rounding)
    assert longest(observed) < 1.005 * published
