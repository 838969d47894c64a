"""A pipeline as a job shop: ranks are machines, passes are jobs, and activations take room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from planner.schedules import BACKWARD, FORWARD, INPUT, WEIGHT, Orders, Pass, most_held

KINDS = (FORWARD, INPUT, WEIGHT)
"""Of passes; a whole backward pass is the last two at once, and never better than the two one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """One step of one pipeline."""

    num_microbatches: int
    ranks: tuple[int, ...]
    """Of every virtual stage, in the order of the layers."""
    times: tuple[tuple[int, int, int], ...]
    """[ns] of F, I and W of every virtual stage."""
    hops: Mapping[tuple[int, int], int]
    """[ns] of a transfer, by (sender, receiver)."""
    sync: tuple[int, ...]
    """[ns] that each rank needs after its last pass."""
    sizes: tuple[int, ...]
    """Layers of every virtual stage, by which its activations count."""
    room: tuple[int, ...]
    """Layers of micro-batches whose activations each rank can hold."""

    @property
    def num_ranks(self) -> int:
        """P."""
        return len(self.sync)

    @property
    def is_possible(self) -> bool:
        """Whether every rank has room for one micro-batch, on all of its virtual stages at once."""
        needed = [sum(self.sizes[stage] for stage in self.hosted(rank)) for rank in range(self.num_ranks)]
        return all(size <= room for size, room in zip(needed, self.room, strict=True))

    @property
    def num_passes(self) -> int:
        """Passes of all ranks."""
        return len(KINDS) * self.num_microbatches * len(self.ranks)

    def hosted(self, rank: int) -> tuple[int, ...]:
        """Return the virtual stages of a rank."""
        return tuple(stage for stage, its in enumerate(self.ranks) if its == rank)

    def time(self, kind: str, stage: int) -> int:
        """Return [ns] of a pass."""
        return self.times[stage][KINDS.index(kind)]

    def hop(self, stage: int, following: int) -> int:
        """Return [ns] of a transfer from a virtual stage to the next or the last one; none on the same rank."""
        here, there = self.ranks[stage], self.ranks[following]
        return 0 if here == there else self.hops[here, there]

    def passes(self) -> Iterator[Pass]:
        """Yield all passes, those of a kind and stage in the order of the micro-batches."""
        for stage in range(len(self.ranks)):
            for kind in KINDS:
                yield from (Pass(kind, microbatch, stage) for microbatch in range(self.num_microbatches))

    def senders(self) -> dict[tuple[int, int], list[tuple[str, int]]]:
        """Return the (kind, stage) whose results take each link."""
        found: dict[tuple[int, int], list[tuple[str, int]]] = {}
        last = len(self.ranks) - 1
        for stage, rank in enumerate(self.ranks):
            for kind, following in ((FORWARD, stage + 1), (INPUT, stage - 1)):
                if 0 <= following <= last and self.ranks[following] != rank:
                    found.setdefault((rank, self.ranks[following]), []).append((kind, stage))
        return found


def split(orders: Orders) -> tuple[tuple[Pass, ...], ...]:
    """Return orders with every backward pass in its two parts, and no pairs."""
    return tuple(tuple(part for one in passes for part in _parts(one)) for passes in orders)


def _parts(one: Pass) -> Iterable[Pass]:
    kinds = (INPUT, WEIGHT) if one.kind == BACKWARD else (one.kind,)
    return (one._replace(kind=kind, paired=False) for kind in kinds)


def fits(shop: Shop, orders: Orders) -> bool:
    """Return whether no rank ever holds more than it has room for."""
    sizes = {(0, stage): float(size) for stage, size in enumerate(shop.sizes)}
    return all(most_held(passes, sizes) <= room for passes, room in zip(orders, shop.room, strict=True))


def timed(shop: Shop, orders: Orders) -> dict[Pass, int]:
    """Return [ns] at which every pass of `orders` begins, each as early as it can; whole backward passes are split.

    Micro-batches are alike, so that the first pass of a kind on a stage counts as that of the first one, and so on.

    Raises:
        AssertionError: ranks wait for one another.

    """
    waiting = [list(reversed(passes)) for passes in split(orders)]
    free = [0] * shop.num_ranks
    links = dict.fromkeys(shop.hops, 0)
    arrived = {(FORWARD, 0, number): 0 for number in range(shop.num_microbatches)}
    starts: dict[tuple[str, int], list[int]] = {}
    moved = True
    while moved:
        moved = False
        for rank, passes in enumerate(waiting):
            while passes and (passes[-1].kind == WEIGHT or _needed(passes[-1]) in arrived):
                moved = True
                one = passes.pop()
                begun = max(free[rank], arrived.get(_needed(one), 0))
                starts.setdefault((one.kind, one.stage), []).append(begun)
                free[rank] = begun + shop.time(one.kind, one.stage)
                _hand_on(shop, one, free[rank], links, arrived)
    assert not any(waiting), "the passes wait for one another"
    return {
        Pass(kind, microbatch, stage): begun
        for (kind, stage), times in starts.items()
        for microbatch, begun in enumerate(times)
    }


def _needed(one: Pass) -> tuple[str, int, int]:
    return one.kind, one.stage, one.microbatch


def _hand_on(
    shop: Shop, one: Pass, end: int, links: dict[tuple[int, int], int], arrived: dict[tuple[str, int, int], int]
) -> None:
    """Let the result of a pass that ends at `end` [ns] arrive where it is needed."""
    kind, microbatch, stage, *_ = one
    following = stage + (1 if kind == FORWARD else -1)
    if kind == FORWARD and following == len(shop.ranks):
        arrived[INPUT, stage, microbatch] = end
    elif kind != WEIGHT and following >= 0:
        link = shop.ranks[stage], shop.ranks[following]
        if link[0] != link[1]:
            end = links[link] = max(end, links[link]) + shop.hops[link]
        arrived[kind, following, microbatch] = end


def step_of(shop: Shop, starts: Mapping[Pass, int]) -> int:
    """Return [ns] of the step whose passes begin at `starts`."""
    ends = [0] * shop.num_ranks
    for one, begun in starts.items():
        rank = shop.ranks[one.stage]
        ends[rank] = max(ends[rank], begun + shop.time(one.kind, one.stage))
    return max(end + sync for end, sync in zip(ends, shop.sync, strict=True))
