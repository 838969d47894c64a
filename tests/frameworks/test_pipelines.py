"""The passes of our schedules are those of PyTorch's, and PyTorch reads them."""

# ruff: noqa: S311 (pipelines are drawn, not secrets)

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from frameworks.asking import Answer, Validator
from pipelines import alike
from planner.program.order import Shop, find_order
from planner.schedules import SCHEDULES, Orders, Pass, Schedule, csv_text, loop, rows, schedule, vee

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

NAMES = {dict(listed.runs_as)["torchtitan"]: listed for listed in SCHEDULES if "torchtitan" in dict(listed.runs_as)}
SHAPES = ((2, 4), (4, 8), (4, 16), (8, 16), (3, 9))
"""(stages, micro-batches)"""


@pytest.fixture
def torch(validator: Callable[[str], Validator]) -> Ask:
    """Asks PyTorch about a schedule."""
    titan = validator("torchtitan_03")

    def asked(name: str, shape: tuple[int, int], chunks: int, **rest: object) -> Answer:
        return titan.ask(schedule=name, ranks=shape[0], stages=chunks, microbatches=shape[1], **rest)

    return asked


def test_all_of_them_are_asked_about() -> None:
    assert sorted(NAMES) == [
        "1F1B",
        "DualPipeV",
        "GPipe",
        "Interleaved1F1B",
        "InterleavedZeroBubble",
        "LoopedBFS",
        "ZBVZeroBubble",
    ]


def with_chunks(listed: Schedule, chunks: int) -> Schedule:
    """Return a schedule with so many chunks, if it can have other numbers than its own."""
    return listed.with_chunks(chunks) if listed.with_chunks else listed


def given(listed: Schedule, orders: Orders) -> Schedule:
    """Return a schedule that runs these passes."""
    return replace(listed, orders=lambda _stages, _microbatches: orders)


def read(ranks: list[list[Any]]) -> Orders:
    """Return the passes of PyTorch's cells."""
    return tuple(tuple(run for cell in cells for run in _runs(cell)) for cells in ranks)


def _runs(cell: str | list[str]) -> list[Pass]:
    if isinstance(cell, list):
        first, second = (_runs(one)[0] for one in cell)
        return [first._replace(paired=True), second]
    found = re.fullmatch(r"(\d+)([FBIW])(\d+)", cell)
    assert found, cell
    return [Pass(found[2], int(found[3]), int(found[1]))]


@pytest.mark.parametrize("chunks", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_passes_steps_and_activations_agree(torch: Ask, name: str, chunks: int) -> None:
    """Pass by pass, but where PyTorch's breadth-first goes back through the micro-batches from the last to the first.

    Its listing of 1F1B numbers micro-batches from the rank on, and is compared by its letters.
    """
    listed = with_chunks(NAMES[name], chunks)
    for shape in SHAPES:
        theirs = read(torch(name, shape, listed.virtual_stages).facts["ranks"])
        ours = listed.passes(*shape)
        if name == "LoopedBFS":
            assert [sorted(passes) for passes in theirs] == [sorted(passes) for passes in ours]
        elif name == "1F1B":
            assert [[run.kind for run in passes] for passes in theirs] == [[r.kind for r in passes] for passes in ours]
            continue
        else:
            assert theirs == ours
        observed = [alike(given(listed, one), shape) for one in (theirs, ours)]
        assert observed[0].step_time == pytest.approx(observed[1].step_time)
        assert observed[0].peak_in_flight == observed[1].peak_in_flight


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"1F1B", "GPipe"}])
def test_our_passes_are_read(torch: Ask, name: str) -> None:
    """Of one chunk a rank PyTorch reads no files."""
    listed = NAMES[name]
    for shape in SHAPES:
        answer = torch(name, shape, listed.virtual_stages, csv=csv_text(listed, *shape))
        assert answer.accepted, answer.message
        expected = [listed.rank(stage, 0, shape[0]) for stage in range(shape[0] * listed.virtual_stages)]
        assert answer.facts["rank_of_stage"] == expected


@pytest.mark.parametrize("name", ["zb-h1", "zb-h2", "v-half", "v-min"])
def test_passes_of_schedules_that_it_does_not_have_are_read(torch: Ask, name: str) -> None:
    """A file of passes is how PyTorch can run them: as what goes in loops, or in a V."""
    listed = schedule(name)
    reader = "ZBVZeroBubble" if listed.virtual_stages == 2 else "InterleavedZeroBubble"
    for shape in SHAPES:
        answer = torch(reader, shape, listed.virtual_stages, csv=csv_text(listed, *shape))
        assert answer.accepted, answer.message


def found(ranks: int, number: int, chunks: int, placement: Callable[[int, int], int]) -> tuple[Orders, tuple[int, ...]]:
    """Return the best order of a random pipeline, whole backward passes on its first stage, and the ranks of stages."""
    draw = random.Random(f"{ranks} {number} {chunks}")
    size = ranks * chunks
    shop = Shop(
        num_microbatches=number,
        ranks=tuple(placement(stage, ranks) for stage in range(size)),
        times=tuple((draw.randint(50, 99), draw.randint(50, 99), draw.randint(50, 99)) for _ in range(size)),
        hops={(one, other): 9 for one in range(ranks) for other in range(ranks)},
        sync=(0,) * ranks,
        sizes=(1,) * size,
        room=(chunks * ranks,) * ranks,
    )
    orders = find_order(shop, (), 0.0, effort=1.0).orders
    assert orders is not None
    whole = tuple(
        tuple(
            one._replace(kind="B") if (one.kind, one.stage) == ("I", 0) else one
            for one in passes
            if (one.kind, one.stage) != ("W", 0)
        )
        for passes in orders
    )
    return whole, shop.ranks


PLACEMENTS = pytest.mark.parametrize(
    ("chunks", "placement"), [(1, loop), (2, loop), (2, vee)], ids=["one", "loop", "vee"]
)


@PLACEMENTS
def test_orders_that_are_found_are_read_and_end(torch: Ask, chunks: int, placement: Callable[[int, int], int]) -> None:
    """As torchtitan reads a file of passes: backward passes whole or in two parts, with their sends and receives."""
    reader = "ZBVZeroBubble" if placement is vee else "Interleaved1F1B"
    for ranks, number in ((2, 4), (4, 6)):
        orders, ranks_of = found(ranks, number, chunks, placement)
        text = "".join(f"{row}\n" for row in rows(orders))
        answer = torch(reader, (ranks, number), chunks, csv=text, runtime=True)
        assert answer.accepted, answer.message
        assert answer.facts["rank_of_stage"] == list(ranks_of)
        assert answer.facts["steps"] >= 3 * number * chunks - number


@PLACEMENTS
def test_orders_that_are_found_train_like_one_process(
    validator: Callable[[str], Validator], chunks: int, placement: Callable[[int, int], int]
) -> None:
    """A process for each rank of a small model: all end, and with the gradients of the whole model in one process."""
    for ranks, number in ((2, 4), (3, 5)):
        orders, ranks_of = found(ranks, number, chunks, placement)
        text = "".join(f"{row}\n" for row in rows(orders))
        answer = validator("torchtitan_03").ask(train=True, csv=text, rank_of_stage=list(ranks_of), microbatches=number)
        assert answer.accepted, answer.message
        assert answer.facts["ended"] == [0] * ranks


@pytest.mark.parametrize("name", ["zb-h1", "v-half", "v-min"])
def test_schedules_that_it_does_not_have_train_like_one_process(
    validator: Callable[[str], Validator], name: str
) -> None:
    """From the file of passes that a plan with them is exported with."""
    listed = schedule(name)
    for ranks, number in ((2, 4), (3, 5)):
        ranks_of = [listed.rank(stage, 0, ranks) for stage in range(ranks * listed.virtual_stages)]
        text = csv_text(listed, ranks, number)
        answer = validator("torchtitan_03").ask(train=True, csv=text, rank_of_stage=ranks_of, microbatches=number)
        assert answer.accepted, answer.message
        assert answer.facts["ended"] == [0] * ranks


def test_missing_passes_are_refused(torch: Ask) -> None:
    text = csv_text(schedule("zbv"), 4, 8)
    answer = torch("ZBVZeroBubble", (4, 8), 2, csv=text.replace("0W0,", ""))
    assert "I and W must have equal counts" in answer.message
    answer = torch("ZBVZeroBubble", (4, 8), 2, csv=text.replace("0F0,", "", 1))
    assert "without first running Forward" in answer.message
