"""Idle time and activations of every schedule against the closed forms of its authors, where stages are alike."""

from __future__ import annotations

from itertools import product

import pytest

from pipelines import alike
from planner.schedules import schedule

STAGES = (1, 2, 3, 4, 6, 8, 11, 16)
CHUNKS = (1, 2, 3, 8)
BATCHES = (1, 2, 4, 8, 12, 16, 24, 32, 33, 48, 64)
TIMES = ((1.0, 1.0, 1.0), (1.0, 1.25, 0.75), (2.0, 2.0, 1.0))
"""[s] of F, I and W; no W is longer than the others, for what fills their gaps would else not fit."""


def idle(name: str, shape: tuple[int, int], times: tuple[float, float, float], chunks: int = 0) -> float:
    """Return [s] that a rank idles in a step."""
    observed = alike(schedule(name, chunks), shape, times)
    return observed.step_time - max(observed.busy)


@pytest.mark.parametrize("name", ["1f1b", "gpipe"])
def test_one_chunk(name: str) -> None:
    """(P - 1) (F + B): Narayanan et al. 2021, section 2.2.1; Huang et al. 2019, section 2.3."""
    for shape in product(STAGES, BATCHES):
        assert idle(name, shape, (1.0, 1.0, 1.0)) == pytest.approx(3.0 * (shape[0] - 1))


@pytest.mark.parametrize("name", ["interleaved", "breadth-first"])
def test_loops(name: str) -> None:
    """(P - 1) (F + B) / v: Narayanan et al. 2021, section 2.2.2; Lamy-Poirier 2022, section 4. M is P or more."""
    for stages, chunks, times in product(STAGES[1:], CHUNKS[1:], (1, 2, 4)):
        assert idle(name, (stages, times * stages), (1.0, 1.0, 1.0), chunks) == pytest.approx(
            3.0 * (stages - 1) / chunks
        )
        if name == "breadth-first":
            held = {schedule(name, chunks).held(rank, stages, times * stages) for rank in range(stages)}
            assert held == {times * stages}


@pytest.mark.parametrize("group", [4, 5, 7, 12])
def test_groups_cost_memory_and_no_time(group: int) -> None:
    """Larger groups idle as long as interleaving does, and hold 2 (P - r - 1) + (v - 1) n + 1 chunks."""
    listed = schedule("interleaved", 3, group)
    observed = alike(listed, (4, 5 * group))
    assert observed.step_time - max(observed.busy) == pytest.approx(3.0 * 3 / 3)
    assert observed.peak_in_flight == tuple(2 * (4 - rank - 1) + 2 * group + 1 for rank in range(4))


def test_zb_h1() -> None:
    """(P - 1) (F + I - W), P micro-batches on every rank: Qi et al. 2023, section 2.3. M is P or more."""
    for stages, more, times in product(STAGES, (0, 1, 5, 32), TIMES):
        shape = (stages, stages + more)
        assert idle("zb-h1", shape, times) == pytest.approx((stages - 1) * (times[0] + times[1] - times[2]))
        assert {schedule("zb-h1").in_flight(rank, *shape) for rank in range(stages)} == {stages}


def test_zb_h2() -> None:
    """(P - 1) (F + I - 2 W), 2 P - 1 micro-batches: Qi et al. 2023, section 2.3. M is 2 P - 1 or more."""
    for stages, more, times in product(STAGES, (0, 1, 5, 32), TIMES):
        shape = (stages, 2 * stages - 1 + more)
        assert idle("zb-h2", shape, times) == pytest.approx((stages - 1) * (times[0] + times[1] - 2 * times[2]))
        assert {schedule("zb-h2").in_flight(rank, *shape) for rank in range(stages)} == {2 * stages - 1}


def test_interleaved_zb() -> None:
    """(P - 1) (F + I - W) / v, P micro-batches on every rank: ZB-H1 with chunks that are as much shorter."""
    for stages, chunks, rounds, times in product(STAGES[1:], CHUNKS[1:], (1, 3), TIMES):
        shape = (stages, rounds * stages)
        expected = (stages - 1) * (times[0] + times[1] - times[2]) / chunks
        assert idle("interleaved-zb", shape, times, chunks) == pytest.approx(expected)
        assert {schedule("interleaved-zb", chunks).held(rank, *shape) for rank in range(stages)} == {stages}


def test_zbv() -> None:
    """No rank idles between its first pass and its last where F = I = W; P micro-batches: Qi et al. 2023, section 6.

    The step still lasts until the last rank, which began P - 1 passes of a chunk later, is done. M is 2 P or more.
    """
    for stages, more in product(STAGES, (0, 1, 5, 32)):
        shape = (stages, 2 * stages + more)
        observed = alike(schedule("zbv"), shape)
        spans = [end - start for start, end in zip(observed.start, observed.finish, strict=True)]
        assert spans == pytest.approx(observed.busy)
        assert observed.step_time == pytest.approx(3.0 * shape[1] + (stages - 1) / 2)
        assert {schedule("zbv").held(rank, *shape) for rank in range(stages)} == {stages}


def test_dualpipe() -> None:
    """(P/2 - 1) (F&B + B - 3 W), P + 1 micro-batches of each stage: github.com/deepseek-ai/DualPipe, where F = I.

    A pair is as long as its passes here. DualPipeV has half as many ranks, its stages counted as P there.
    """
    for stages, more, (forward, inputs, weights) in product((2, 4, 6, 8, 16), (0, 2, 10, 32), (TIMES[0], TIMES[2])):
        backward = inputs + weights
        expected = (stages / 2 - 1) * (forward + backward + backward - 3 * weights)
        shape = (stages, 2 * stages + more)
        assert idle("dualpipe", shape, (forward, inputs, weights)) == pytest.approx(expected)
        assert {schedule("dualpipe").held(rank, *shape) for rank in range(stages)} == {stages + 1}
        halved = (stages // 2, stages + more)
        assert idle("dualpipev", halved, (2 * forward, 2 * inputs, 2 * weights)) == pytest.approx(expected)
        assert {schedule("dualpipev").in_flight(rank, *halved) for rank in range(stages // 2)} == {stages + 1}


@pytest.mark.parametrize(
    ("name", "chunks", "published"), [("chimera", 1, {4: 16, 8: 36}), ("bitpipe", 2, {4: 28, 8: 60})]
)
def test_both_ends(name: str, chunks: int, published: dict[int, int]) -> None:
    """(P - 2) / (3 v M / 2 + P - 2) of a step idle at M = P, where B = 2 F: Li and Hoefler 2021; Wu et al. 2024.

    For 4 and 8 ranks a solver finds no shorter step. Further units of P micro-batches leave gaps between them; of the
    first a rank holds P/2 + 1 to P micro-batches, with chunks of halves.
    """
    for stages in (2, 4, 6, 8, 10, 12, 14, 16):
        observed = alike(schedule(name), (stages, stages), (1.0 * chunks, 1.0 * chunks, 1.0 * chunks))
        length = 3 * chunks * stages + 2 * (stages - 2)
        assert observed.step_time == pytest.approx(length)
        assert published.get(stages, length) == length
        share = 1 - sum(observed.busy) / (stages * length)
        assert share == pytest.approx((stages - 2) / (3 * chunks * stages / 2 + stages - 2))
        held = [schedule(name).held(rank, stages, stages) for rank in range(stages)]
        assert max(held) == stages
        if chunks == 1:
            assert min(held) == stages / 2 + 1


@pytest.mark.parametrize(("name", "more", "share"), [("v-half", 3, 2), ("v-min", 4, 3)])
def test_controllable_memory(name: str, more: int, share: int) -> None:
    """Activations near a half and a third of 1F1B's P, whatever M is: Qi et al. 2024, section 4.

    A building block lives for 6 P and 4 P passes of two chunks, of which one micro-batch begins every 6.
    """
    for stages, microbatches in product(range(1, 17), (32, 64)):
        held = [schedule(name).held(rank, stages, microbatches) for rank in range(stages)]
        assert stages / share <= max(held) <= (stages + more) / share
        observed = alike(schedule(name), (stages, microbatches))
        assert observed.step_time - max(observed.busy) < 3 * stages  # less than 1F1B's 3 (P - 1), or near it
