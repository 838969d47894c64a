"""Where every micro-batch is: ranks at work on any order of passes, and what has arrived at which stage."""

# ruff: noqa: FURB136 (a call of max costs more than the pass that it would time)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.schedules import BACKWARD, FORWARD, INPUT, WEIGHT, Orders, Pass, Schedule, cell

NEVER = -1.0
"""[s] arrival of what has not arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """What one virtual stage takes [s] for one micro-batch, on the rank that runs it."""

    forward: float
    backward: float
    """The whole of it."""
    weight: float
    """The part of it that makes the gradients of the weights."""
    sync: float = 0.0
    """Of the exchange of its gradients, where it does not wait for the other stages of the rank."""

    def of(self, kind: str) -> float:
        """Return the seconds of a pass of a kind."""
        if kind == FORWARD:
            return self.forward
        return {WEIGHT: self.weight, INPUT: self.backward - self.weight}.get(kind, self.backward)


@dataclass(slots=True)
class _Way:
    """What the passes of a kind do on a stage: how long they take, what they need, and where their results go."""

    time: float
    needs: list[float] | None
    """[s] at which the inputs are there, by place; None if nothing is waited for."""
    base: int
    """Place of micro-batch 0."""
    gives: list[float] | None = None
    """[s] at which the results are there, for whoever needs them; None if nobody does."""
    shift: int = 0
    """From the place of the input to that of the result."""
    to: int = 0
    """Rank that takes the result."""
    link: list[float] | None = None
    """[s] at which the link is free; None if the result stays on the rank."""
    hop: float = 0.0
    after: float = 0.0
    """[s] of work behind each pass."""
    ended: float = 0.0
    """[s] of the last pass."""


@dataclass(slots=True)
class Board:
    """One step at work."""

    schedule: Schedule
    times: Mapping[tuple[int, int], StageTimes]
    links: Mapping[tuple[int, int], float]
    num_stages: int
    num_microbatches: int
    after: Sequence[float] = ()
    """[s] that every rank works on its weights after each backward pass, whose result has left; empty if none does."""
    start: list[float] = field(init=False)
    """[s] of the first pass of every rank."""
    free: list[float] = field(init=False)
    """[s] at which every rank is free."""
    _position: list[int] = field(init=False)
    _awaited: list[tuple[list[float], int] | None] = field(init=False)
    """What every rank waits for, where it does: an inbox and a place in it."""
    _ready: list[int] = field(init=False)
    _ways: dict[tuple[str, int, int], _Way] = field(init=False)
    """By kind, virtual stage and direction."""

    def __post_init__(self) -> None:
        """Set everything to the beginning of the step."""
        ranks = self.num_stages
        self.start, self.free = [0.0] * ranks, [0.0] * ranks
        self._position, self._awaited = [0] * ranks, [None] * ranks
        self._ready = list(range(ranks))
        self._ways = self._all_ways()

    def ended(self, stage: tuple[int, int]) -> float:
        """Return [s] at which a (direction, virtual stage) ran its last pass."""
        direction, number = stage
        return max(self._ways[kind, number, direction].ended for kind in (BACKWARD, INPUT, WEIGHT))

    def run(self, orders: Orders) -> None:
        """Run all passes.

        Raises:
            AssertionError: ranks wait for one another.

        """
        while self._ready:
            rank = self._ready.pop()
            self._advance(rank, orders[rank])
        stuck = [
            f"rank {rank} waits for the input of {cell(passes[at])}"
            for rank, (at, passes) in enumerate(zip(self._position, orders, strict=True))
            if at < len(passes)
        ]
        if stuck:
            raise AssertionError(f"schedule {self.schedule.name} is stuck: {'; '.join(stuck)}")

    def _advance(self, rank: int, passes: Sequence[Pass]) -> None:
        """Run the passes of a rank until an input is missing."""
        at, now, ways = self._position[rank], self.free[rank], self._ways
        while at < len(passes):
            kind, microbatch, stage, direction, paired = passes[at]
            way = ways[kind, stage, direction]
            begun = now
            if way.needs is not None:
                arrival = way.needs[way.base + microbatch]
                if arrival < 0.0:
                    self._awaited[rank] = way.needs, way.base + microbatch
                    break
                begun = arrival if arrival > now else now
            if at == 0:
                self.start[rank] = begun
            if not paired:
                now = begun + way.time
                self._hand_on(way, microbatch, now)
                now += way.after
                at += 1
                continue
            other = passes[at + 1]
            beside = ways[other.kind, other.stage, other.direction]
            place = beside.base + other.microbatch
            if beside.needs is not None and beside.needs[place] < 0.0:
                self._awaited[rank] = beside.needs, place
                break
            now = max(begun, 0.0 if beside.needs is None else beside.needs[place]) + way.time + beside.time
            self._hand_on(way, microbatch, now)
            self._hand_on(beside, other.microbatch, now)
            at += 2
        self._position[rank], self.free[rank] = at, now

    def _hand_on(self, way: _Way, microbatch: int, now: float) -> None:
        """Send the result of a pass that has ended `now`, and wake the rank that waits for it."""
        way.ended = now
        if way.gives is None:
            return
        place = way.base + microbatch + way.shift
        if way.link is None:
            way.gives[place] = now
            return
        way.link[0] = (way.link[0] if way.link[0] > now else now) + way.hop
        way.gives[place] = way.link[0]
        awaited = self._awaited[way.to]
        if awaited is not None and awaited[0] is way.gives and awaited[1] == place:
            self._awaited[way.to] = None
            self._ready.append(way.to)

    def _all_ways(self) -> dict[tuple[str, int, int], _Way]:
        """Return what the passes of every kind do on every stage, nothing having arrived but the batch."""
        last, size = self.num_stages * self.schedule.virtual_stages - 1, self.num_microbatches
        free = {pair: [0.0] for pair in self.links}
        ways = {}
        for direction in range(self.schedule.directions):
            there = [0.0] * size + [NEVER] * (last * size)
            back = [NEVER] * ((last + 1) * size)
            for stage in range(last + 1):
                for kind, inbox, step in ((FORWARD, there, 1), (BACKWARD, back, -1), (INPUT, back, -1)):
                    way = _Way(time=self.times[direction, stage].of(kind), needs=inbox, base=stage * size)
                    if 0 <= stage + step <= last:
                        self._connect(way, stage, stage + step, direction, free)
                        way.gives, way.shift = inbox, step * size
                    elif kind == FORWARD:  # the last stage goes backward on what it has made
                        way.gives = back
                    if kind == BACKWARD and self.after:
                        way.after = self.after[self.schedule.rank(stage, direction, self.num_stages)]
                    ways[kind, stage, direction] = way
                time = self.times[direction, stage].of(WEIGHT)
                ways[WEIGHT, stage, direction] = _Way(time=time, needs=None, base=stage * size)
        return ways

    def _connect(
        self, way: _Way, stage: int, following: int, direction: int, free: Mapping[tuple[int, int], list[float]]
    ) -> None:
        """Let results of a stage travel to the one that needs them, over a link where that lies on another rank."""
        here, there = (self.schedule.rank(number, direction, self.num_stages) for number in (stage, following))
        way.to = there
        if here != there:
            way.link, way.hop = free[here, there], self.links[here, there]
