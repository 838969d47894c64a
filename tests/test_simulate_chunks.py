"""The replay of ranks with several chunks, against one that knows micro-batches and nothing of inboxes."""

# ruff: noqa: S311 (cases are drawn, not secrets)

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from pipelines import Pipeline, drawn
from planner.schedules import BACKWARD, FORWARD, Schedule, operations, schedule
from planner.simulate import replay


def events(listed: Schedule, pipeline: Pipeline) -> float:
    """Return [s] the end of the last sync; every pass waits for those of its own micro-batch before and behind it."""
    stages, chunks = len(pipeline.sync), listed.virtual_stages
    left = [list(operations(listed.order(stage, stages, pipeline.num_microbatches))) for stage in range(stages)]
    arrived: dict[tuple[str, int, int], float] = {}
    free, links = [0.0] * stages, defaultdict[tuple[str, int], float](float)
    for batch in range(pipeline.num_microbatches):
        arrived[FORWARD, 0, batch] = 0.0
    while any(left):
        for stage in range(stages):
            while left[stage]:
                kind, number = left[stage][0]
                group, within = divmod(number, stages * chunks)
                batch, chunk = group * stages + within % stages, listed.chunk(number, stages)
                place = (chunk if kind == FORWARD else chunks - 1 - chunk) * stages + stage
                if (kind, place, batch) not in arrived:
                    break
                times = pipeline.forward if kind == FORWARD else pipeline.backward
                free[stage] = max(free[stage], arrived[kind, place, batch]) + times[place]
                following, hop = _next(pipeline, kind, place)
                if hop is not None:
                    links[kind, stage] = max(links[kind, stage], free[stage]) + hop
                arrived[(*following, batch)] = free[stage] if hop is None else links[kind, stage]
                left[stage].pop(0)
    return max(end + sync for end, sync in zip(free, pipeline.sync, strict=True))


def _next(pipeline: Pipeline, kind: str, place: int) -> tuple[tuple[str, int], float | None]:
    """Return which pass of a micro-batch follows another and [s] of the transfer to it; None where it stays."""
    last = len(pipeline.forward) - 1
    if kind == FORWARD and place == last:
        return (BACKWARD, place), None
    if kind == FORWARD:
        return (FORWARD, place + 1), pipeline.hops_forward[place]
    return (BACKWARD, place - 1), pipeline.hops_backward[place - 1] if place else None


@pytest.mark.parametrize("chunks", [2, 3, 5])
def test_chunks_follow_their_micro_batches(chunks: int) -> None:
    """Both replays agree where chunks, joints and ranks all take unlike times."""
    listed = schedule("interleaved", chunks)
    draw = random.Random(5)
    for _ in range(60):
        pipeline = drawn(draw, 40, listed)
        assert replay(listed, *pipeline.times).step_time == pytest.approx(events(listed, pipeline), rel=1e-12)


def test_one_chunk_is_the_same_to_both() -> None:
    """The replay by micro-batches agrees on ranks of one chunk too."""
    draw = random.Random(6)
    for _ in range(60):
        pipeline = drawn(draw, 40)
        assert replay(schedule("1f1b"), *pipeline.times).step_time == pytest.approx(
            events(schedule("1f1b"), pipeline), rel=1e-12
        )
