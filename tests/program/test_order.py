"""The best order of passes: against known optima, against every order there is, and against the named ones."""

# ruff: noqa: S311 (pipelines are drawn, not secrets)

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import permutations, product

import pytest

from planner.program.order import Shop, find_order, fits, least_step
from planner.program.order import room as rooms
from planner.program.order.shop import step_of, timed
from planner.schedules import SCHEDULES, Orders, Pass, Schedule, loop, most_held, schedule, vee
from planner.schedules.base import counted, letters
from planner.simulate import StageTimes, replay_orders

Placement = Callable[[int, int], int]
EFFORT = 5.0


def shop(
    shape: tuple[int, int],
    times: list[tuple[int, int, int]],
    room: list[int],
    *,
    chunks: int = 1,
    placement: Placement = loop,
    hops: list[int] | None = None,
    sync: list[int] | None = None,
) -> Shop:
    """Return a shop of (ranks, micro-batches), each virtual stage one layer."""
    ranks, microbatches = shape
    pairs = [(one, other) for one in range(ranks) for other in range(ranks) if one != other]
    return Shop(
        num_microbatches=microbatches,
        ranks=tuple(placement(stage, ranks) for stage in range(ranks * chunks)),
        times=tuple(times),
        hops=dict(zip(pairs, hops or [0] * len(pairs), strict=True)),
        sync=tuple(sync or [0] * ranks),
        sizes=(1,) * ranks * chunks,
        room=tuple(room),
    )


def named(shape: tuple[int, int], chunks: int, placement: Placement) -> dict[str, Orders]:
    """Return the orders of the named schedules with a placement, which end a step before they begin the next."""
    found = {}
    for listed in SCHEDULES:
        own = listed.with_chunks(chunks) if listed.with_chunks and chunks > 1 else listed
        if own.virtual_stages != chunks or own.directions > 1 or not own.flushes or own.joins_steps:
            continue
        stages = range(shape[0] * chunks)
        if not own.blocker(*shape) and all(own.placement(s, shape[0]) == placement(s, shape[0]) for s in stages):
            found[own.name] = own.passes(*shape)
    return found


def replayed(what: Shop, orders: Orders, chunks: int, placement: Placement) -> float:
    """Return what the replay says of an order [ns]."""
    given = Schedule(
        name="given",
        summary="",
        in_flight=counted(lambda _ranks, _number: orders),
        order=letters(lambda _ranks, _number: orders),
        orders=lambda _ranks, _number: orders,
        changes_semantics=False,
        virtual_stages=chunks,
        placement=placement,
    )
    times = {(0, stage): StageTimes(forward=f, backward=i + w, weight=w) for stage, (f, i, w) in enumerate(what.times)}
    return replay_orders(given, times, what.hops, what.sync, what.num_microbatches).step_time


def test_with_the_memory_of_1f1b_its_time_is_the_least() -> None:
    """P = 4, M = 8, F = I = W = 1, room for 4, 3, 2, 1: the last rank runs F, I and W of one after the other.

    From 3 on 8 x 3 less its last W, then three I on the way back and a W: 3 + 23 + 3 + 1 = 30. 1F1B with whole backward
    passes takes (8 + 3) x 3 = 33.
    """
    what = shop((4, 8), [(1, 1, 1)] * 4, [4, 3, 2, 1])
    found = find_order(what, (), 0.0, effort=EFFORT)
    assert found.orders is not None
    assert (step_of(what, timed(what, found.orders)), found.bound) == (30, 30)


@pytest.mark.parametrize("known", [(), ("1f1b", "zb-h1")], ids=["by itself", "from zb-h1"])
def test_with_the_memory_of_zb_h1_its_time_is_the_least(known: tuple[str, ...]) -> None:
    """Room for P on every rank: the last one begins after 3 and works 24, which no order can beat."""
    what = shop((4, 8), [(1, 1, 1)] * 4, [4] * 4)
    found = find_order(what, [schedule(name).passes(4, 8) for name in known], 0.0, effort=EFFORT)
    assert found.orders is not None
    assert (step_of(what, timed(what, found.orders)), found.bound, least_step(what)) == (27, 27, 27)
    assert step_of(what, timed(what, schedule("zb-h1").passes(4, 8))) == 27


def test_zbv_is_proved_to_be_best() -> None:
    """Two chunks in a V and room for P: (P - 1) F / 2 beside the work, 8 x 6 + 3 = 51 half units. Nothing to solve."""
    what = shop((4, 8), [(1, 1, 1)] * 8, [8] * 4, chunks=2, placement=vee)
    known = schedule("zbv").passes(4, 8)
    found = find_order(what, [known], 0.0, effort=0.0)
    assert found.orders == known
    assert (step_of(what, timed(what, known)), found.bound) == (51, 51)


def test_without_room_for_a_micro_batch_there_is_no_order() -> None:
    what = shop((2, 3), [(1, 1, 1)] * 4, [2, 1], chunks=2, placement=vee)
    assert find_order(what, (), 0.0, effort=EFFORT).impossible


@cache
def _rows(stages: tuple[int, ...], microbatches: int) -> tuple[tuple[Pass, ...], ...]:
    """Return every order of a rank in which F comes before I and I before W, micro-batches in any order."""
    passes = [Pass(kind, number, stage) for stage in stages for number in range(microbatches) for kind in "FIW"]

    def sound(row: tuple[Pass, ...]) -> bool:
        at = {one: place for place, one in enumerate(row)}
        trios = [[Pass(kind, number, stage) for kind in "FIW"] for stage in stages for number in range(microbatches)]
        return all(at[f] < at[i] < at[w] for f, i, w in trios)

    return tuple(row for row in permutations(passes) if sound(row))


def every_order(what: Shop) -> Iterator[Orders]:
    """Yield every order that finds room."""
    rows = []
    for rank, room in enumerate(what.room):
        sizes = {(0, stage): 1.0 for stage in what.hosted(rank)}
        rows.append([row for row in _rows(what.hosted(rank), what.num_microbatches) if most_held(row, sizes) <= room])
    yield from product(*rows)


def ending(what: Shop, tried: Iterator[Orders], chunks: int, placement: Placement) -> Iterator[float]:
    """Yield what orders take [ns], but for those whose ranks wait for one another."""
    for orders in tried:
        with suppress(AssertionError):
            yield replayed(what, orders, chunks, placement)


@pytest.mark.parametrize("seed", range(12))
def test_no_order_at_all_is_better(seed: int) -> None:
    """Of two ranks and two micro-batches, or of a V and one, with unlike passes and links; 90 x 90 orders at most."""
    draw = random.Random(seed)
    chunks, placement, number = ((1, loop, 2), (2, vee, 1))[seed % 3 == 2]
    times = [(draw.randint(1, 9), draw.randint(1, 9), draw.randint(1, 9)) for _ in range(2 * chunks)]
    room = [draw.randint(chunks, 2 * number * chunks) for _ in range(2)]
    hops = [draw.choice((0, 1, 4, 15)) for _ in range(2)]
    sync = [draw.choice((0, 5)) for _ in range(2)]
    what = shop((2, number), times, room, chunks=chunks, placement=placement, hops=hops, sync=sync)
    best = min(ending(what, every_order(what), chunks, placement))
    found = find_order(what, (), 0.0, effort=EFFORT)
    assert found.orders is not None
    assert least_step(what) <= found.bound <= best
    assert replayed(what, found.orders, chunks, placement) == best


@pytest.mark.parametrize("seed", range(20))
def test_no_named_order_that_finds_room_is_faster(seed: int) -> None:
    """Unlike stages, links and rooms: the bound holds for all, the order keeps to its room, and the replay agrees."""
    draw = random.Random(seed)
    chunks, placement = ((1, loop), (2, loop), (2, vee))[seed % 3]
    shape = (draw.randint(2, 4), draw.randint(1, 3) * 2)
    size = shape[0] * chunks
    times = [(draw.randint(50, 150), draw.randint(50, 190), draw.randint(1, 150)) for _ in range(size)]
    room = [draw.randint(chunks, 2 * shape[0] * chunks) for _ in range(shape[0])]
    hops = [draw.choice((0, 9, 40, 300)) for _ in range(shape[0] * (shape[0] - 1))]
    sync = [draw.choice((0, 60)) for _ in range(shape[0])]
    what = shop(shape, times, room, chunks=chunks, placement=placement, hops=hops, sync=sync)
    known = named(shape, chunks, placement)
    found = find_order(what, list(known.values()), 0.0, effort=0.3)
    if found.orders is None:
        assert not any(fits(what, orders) for orders in known.values())
        return
    takes = replayed(what, found.orders, chunks, placement)
    assert found.bound <= takes == step_of(what, timed(what, found.orders))
    assert fits(what, found.orders)
    assert sorted(one for row in found.orders for one in row) == sorted(what.passes())
    for orders in known.values():
        slower = replayed(what, orders, chunks, placement)
        assert found.bound <= slower or not fits(what, orders)
        assert takes <= slower or not fits(what, orders)


@pytest.mark.parametrize("seed", range(6))
def test_room_is_told_in_two_ways_that_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In clauses for two chunks, and by sums for more: both prove the same step."""
    draw = random.Random(seed)
    placement = (loop, vee)[seed % 2]
    times = [(draw.randint(50, 150), draw.randint(50, 190), draw.randint(1, 150)) for _ in range(4)]
    what = shop((2, 3), times, [draw.randint(2, 4), draw.randint(2, 4)], chunks=2, placement=placement, hops=[9, 9])
    proved = []
    for most in (rooms.MOST_IN_CLAUSES, 0):
        monkeypatch.setattr(rooms, "MOST_IN_CLAUSES", most)
        found = find_order(what, (), 0.0, effort=EFFORT)
        assert found.orders is not None
        assert fits(what, found.orders)
        assert step_of(what, timed(what, found.orders)) == found.bound
        proved.append(found.bound)
    assert proved[0] == proved[1]


def test_slow_links_are_no_reason_to_be_slower_than_a_named_order() -> None:
    """A link that is busy longer than a pass takes: what the program leaves open is judged before it is given away."""
    what = shop((2, 4), [(3, 2, 1)] * 4, [8, 8], chunks=2, placement=vee, hops=[20, 20])
    known = list(named((2, 4), 2, vee).values())
    found = find_order(what, known, 0.0, effort=1.0)
    assert found.orders is not None
    assert step_of(what, timed(what, found.orders)) <= min(step_of(what, timed(what, one)) for one in known)
