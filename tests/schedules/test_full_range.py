"""Every schedule on every shape up to 16 ranks, 64 micro-batches and 8 chunks, one replay each."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from planner.schedules import SCHEDULES, Orders, Pass, Schedule, peak_in_flight, schedule
from planner.simulate import Replay, StageTimes, replay
from planner.simulate.board import Board

STAGES, BATCHES, CHUNKS = range(1, 17), range(1, 65), range(2, 9)
WHOLE, SPLIT = "FB", "FIW"
"""What a stage does with a micro-batch."""


@pytest.fixture(autouse=True)
def _nothing_collected() -> Iterator[None]:
    """Leave millions of passes, none of which is part of a cycle, to their counts: half of the time goes else."""
    gc.disable()
    yield
    gc.enable()


def shapes(listed: Schedule) -> Iterator[tuple[int, int]]:
    """Yield the (stages, micro-batches) of the range that a schedule can run."""
    return (shape for shape in product(STAGES, BATCHES) if not listed.blocker(*shape))


def lettered(listed: Schedule, stages: int, microbatches: int) -> Replay:
    """Return the replay of passes of 1 s forward and 2 s backward, which raises where an order is not complete."""
    number = stages * listed.virtual_stages
    free = [0.0] * (number - 1)
    return replay(listed, [1.0] * number, [2.0] * number, free, free, [0.0] * stages, microbatches)


@pytest.mark.parametrize("name", ["1f1b", "gpipe"])
def test_one_chunk_idles_and_holds_what_the_formulas_say(name: str) -> None:
    """A step takes (M + P - 1) (F + B); rank r holds min(M, P - r) micro-batches with 1F1B and M with GPipe.

    Narayanan et al. 2021, section 2.2.1; Huang et al. 2019, section 2.3.
    """
    listed = schedule(name)
    for stages, microbatches in product(STAGES, BATCHES):
        observed = lettered(listed, stages, microbatches)
        assert observed.step_time == pytest.approx(3.0 * (microbatches + stages - 1))
        held = [min(microbatches, stages - rank if name == "1f1b" else microbatches) for rank in range(stages)]
        assert [*observed.peak_in_flight] == held
        assert [listed.in_flight(rank, stages, microbatches) for rank in range(stages)] == held


@pytest.mark.parametrize("chunks", CHUNKS)
def test_interleaving_idles_and_holds_what_the_formulas_say(chunks: int) -> None:
    """In passes of a chunk: (v M + P - 1) (F + B), and min(v M, 2 (P - r - 1) + (v - 1) P + 1) held.

    Narayanan et al. 2021, section 2.2.2; Megatron-LM 0.12, which takes whole groups of P micro-batches.
    """
    listed = schedule("interleaved", chunks)
    for stages, microbatches in product(STAGES, BATCHES):
        assert bool(listed.blocker(stages, microbatches)) == (stages == 1 or microbatches % stages > 0)
    for stages, microbatches in shapes(listed):
        observed = lettered(listed, stages, microbatches)
        assert observed.step_time == pytest.approx(3.0 * (chunks * microbatches + stages - 1))
        held = [
            min(chunks * microbatches, 2 * (stages - rank - 1) + (chunks - 1) * stages + 1) for rank in range(stages)
        ]
        assert [*observed.peak_in_flight] == held
        assert [listed.in_flight(rank, stages, microbatches) for rank in range(stages)] == held


@pytest.mark.parametrize("chunks", CHUNKS)
def test_breadth_first_idles_and_holds_what_the_formulas_say(chunks: int) -> None:
    """In passes of a chunk: (v max(M, P) + min(M, P) - 1) (F + B), and v M held: Lamy-Poirier 2022, section 4.

    With fewer micro-batches than ranks a chunk waits until the first of them has come round.
    """
    listed = schedule("breadth-first", chunks)
    for stages, microbatches in product(STAGES, BATCHES):
        orders = listed.passes(stages, microbatches)
        rounds = chunks * max(microbatches, stages) + min(microbatches, stages) - 1
        assert max(ran(listed, stages, microbatches, orders)) == pytest.approx(3.0 * rounds)
        number = chunks * microbatches
        assert {(len(passes), peak_in_flight(spelled(passes))) for passes in orders} == {(2 * number, number)}


def ran(listed: Schedule, stages: int, microbatches: int, orders: Orders) -> list[float]:
    """Return [s] at which each rank has run all of its passes; raises where they wait for one another."""
    took = StageTimes(forward=1.0, backward=2.0, weight=1.0)
    runs = {place: took for hosted in listed.hosted(stages) for place in hosted}
    near = [(one, other) for one in range(stages) for other in (one - 1, one + 1, one + 1 - stages, one + stages - 1)]
    board = Board(listed, runs, dict.fromkeys(near, 0.0), stages, microbatches)
    board.run(orders)
    return board.free


def spelled(passes: Sequence[Pass]) -> str:
    """Return the kinds of the passes of a rank."""
    return "".join([one.kind for one in passes])


def complete(hosted: Sequence[tuple[int, int]], each: int, passes: Sequence[Pass]) -> bool:
    """Tell whether a rank takes each micro-batch of a direction forward and back once on each stage that it hosts."""
    done: dict[tuple[int, int, int], str] = {}
    for kind, microbatch, stage, direction, _ in passes:
        key = (direction, stage, microbatch)
        done[key] = done.get(key, "") + kind
    wanted = {(direction, stage, direction * each + one) for direction, stage in hosted for one in range(each)}
    return done.keys() == wanted and {*done.values()} <= {WHOLE, SPLIT}


def variants() -> Iterator[Schedule]:
    """Yield the schedules that are given by their passes, with each number of chunks that they know."""
    for listed in SCHEDULES:
        if listed.orders is not None and listed.name != "breadth-first":
            yield from (listed.with_chunks(number) for number in CHUNKS) if listed.with_chunks else [listed]


@pytest.mark.parametrize("listed", [*variants()], ids=lambda one: f"{one.name}-{one.virtual_stages}")
def test_every_order_is_complete_and_never_stuck(listed: Schedule) -> None:
    """And what it holds is what `in_flight` counts, on every shape that its `blocker` lets through."""
    for stages, microbatches in shapes(listed):
        orders, hosted = listed.passes(stages, microbatches), listed.hosted(stages)
        each = microbatches // listed.directions
        ran(listed, stages, microbatches, orders)
        assert all(complete(own, each, passes) for own, passes in zip(hosted, orders, strict=True))
        held = [peak_in_flight(spelled(passes)) for passes in orders]
        assert held == [listed.in_flight(rank, stages, microbatches) for rank in range(stages)]
