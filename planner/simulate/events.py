"""The passes and transfers of one step, each with its beginning and end: what `replay` counts, kept to be looked at.

An order of passes is all that a schedule has to give: forward (F), backward (B), or its halves where they run apart,
the gradient of the input (I), which the stage before waits for, and that of the weights (W), which nobody does.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.schedules import BACKWARD, FORWARD, WEIGHT, Schedule, operations
from planner.units import Seconds

COMPUTE, P2P, DP = "compute", "p2p", "dp"
"""Lanes of a stage, beside one of each axis that exchanges inside its passes."""
ACTIVATIONS, GRADIENTS = "activations", "gradients"
"""What a transfer carries."""


class Pass(NamedTuple):
    """A pass of a stage; all are counted from 0."""

    kind: str
    """``F``, ``B``, ``I`` or ``W``."""
    micro_batch: int
    chunk: int
    """Of those that the stage holds; with two directions those of the second come after those of the first."""
    paired: bool = False
    """Whether it runs at once with the next one of the stage: both wait for both inputs, and end together."""


class Event(NamedTuple):
    """What one lane of a stage does for a while."""

    stage: int
    lane: str
    name: str
    """The kind of a pass, what a transfer carries, or what is waited for."""
    start: float
    """[s] from the beginning of the step."""
    end: float
    """[s]"""
    micro_batch: int = -1
    """-1 where it is of no single one."""
    chunk: int = -1
    other: int = -1
    """The stage that a transfer goes to."""
    other_chunk: int = -1
    """The chunk there."""


Place = tuple[int, int]
"""(stage, chunk)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What the stages of a pipeline run in one step, and how a micro-batch goes through them."""

    orders: tuple[tuple[Pass, ...], ...]
    """The passes of each stage."""
    route: tuple[Place, ...]
    """Where a micro-batch goes forward, from the first layers to the last."""
    other_route: tuple[Place, ...] = ()
    """Where those go that come in at the other end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long everything takes [s]."""

    passes: Mapping[tuple[str, int, int], Seconds]
    """(kind, stage, chunk) -> one pass."""
    ahead: Sequence[Seconds]
    """Transfers of activations between each place of the route and the next."""
    back: Sequence[Seconds]
    """Transfers of gradients, at the same joints."""
    links: Mapping[tuple[int, int], Seconds] | None = None
    """Transfers by sender and receiver, where whatever one sends to the other shares a link; None: by joints."""
    blocking: bool = False
    """Whether a stage does nothing else until what it sends has arrived."""
    after: Sequence[Seconds] = ()
    """What each stage does after every backward pass, when its result has left; empty if that is nothing."""


def course(schedule: Schedule, num_stages: int, num_microbatches: int) -> Course:
    """Return what a schedule makes the stages run: from letters, micro-batches pass each chunk in order."""
    if schedule.orders is not None:
        return _listed(schedule, num_stages, num_microbatches)
    orders = tuple(_order(schedule, stage, num_stages, num_microbatches) for stage in range(num_stages))
    route = tuple((stage, chunk) for chunk in range(schedule.virtual_stages) for stage in range(num_stages))
    return Course(orders=orders, route=route)


def _listed(schedule: Schedule, num_stages: int, num_microbatches: int) -> Course:
    """Return the course of a schedule that is given by its passes."""
    places = [{held: chunk for chunk, held in enumerate(hosted)} for hosted in schedule.hosted(num_stages)]
    orders = tuple(
        tuple(Pass(one.kind, one.microbatch, place[one.direction, one.stage], one.paired) for one in passes)
        for place, passes in zip(places, schedule.passes(num_stages, num_microbatches), strict=True)
    )
    routes = [
        tuple(
            (rank := schedule.rank(number, direction, num_stages), places[rank][direction, number])
            for number in range(num_stages * schedule.virtual_stages)
        )
        for direction in range(schedule.directions)
    ]
    return Course(orders=orders, route=routes[0], other_route=routes[1] if len(routes) > 1 else ())


def _order(schedule: Schedule, stage: int, num_stages: int, num_microbatches: int) -> tuple[Pass, ...]:
    met: Counter[tuple[str, int]] = Counter()
    found = []
    for kind, number in operations(schedule.order(stage, num_stages, num_microbatches)):
        chunk = schedule.chunk(number, num_stages)
        chunk = chunk if kind == FORWARD else schedule.virtual_stages - 1 - chunk
        found.append(Pass(kind, met[kind, chunk], chunk))
        met[kind, chunk] += 1
    return tuple(found)


def run(what: Course, takes: Durations) -> list[Event]:
    """Return the passes and transfers of one step, pass by pass in the order in which they could run.

    As in `replay`: a stage runs its passes in order, one at a time, each when its input has arrived; a transfer starts
    when its pass has ended and the link is free, and each direction of each joint is a link of its own.

    Raises:
        AssertionError: the orders can never be finished.

    """
    return _Running(what, takes).run()


@dataclass(slots=True)
class _Running:
    """A pipeline at work."""

    what: Course
    takes: Durations
    events: list[Event] = field(default_factory=list)
    arrived: dict[tuple[str, int, int], float] = field(default_factory=dict)
    """(``F`` or ``B``, micro-batch, place of the route) -> [s] when its input is there."""
    links: dict[tuple[str, int, int], float] = field(default_factory=dict)
    """(kind, sender, receiver) -> [s] when the link is free."""

    def run(self) -> list[Event]:
        orders = self.what.orders
        routes = (self.what.route, self.what.other_route)
        at = {place: (index, route) for route in routes for index, place in enumerate(route)}
        free, done = [0.0] * len(orders), [0] * len(orders)
        woken = deque(range(len(orders)))
        while woken:
            stage = woken.popleft()
            while done[stage] < len(orders[stage]):
                first = done[stage]
                together = orders[stage][first : first + 1 + orders[stage][first].paired]
                ready = [self._ready(one, *at[stage, one.chunk]) for one in together]
                if None in ready:
                    break
                end = max(free[stage], *(time for time in ready if time is not None))
                for one in together:
                    start, end = end, end + self.takes.passes[one.kind, stage, one.chunk]
                    self.events.append(Event(stage, COMPUTE, one.kind, start, end, one.micro_batch, one.chunk))
                for one in together:
                    free[stage], receiver = self._send(one, stage, *at[stage, one.chunk], end)
                    if receiver >= 0:
                        woken.append(receiver)
                if self.takes.after and together[-1].kind == BACKWARD:
                    free[stage] += self.takes.after[stage]
                done[stage] += len(together)
        stuck = [f"stage {stage}" for stage, order in enumerate(orders) if done[stage] < len(order)]
        assert not stuck, f"the passes of {', '.join(stuck)} wait for inputs that never come"
        return self.events

    def _ready(self, one: Pass, place: int, route: Sequence[Place]) -> float | None:
        """Return when the input of a pass is there; None if nobody has sent it yet."""
        first = 0 if one.kind == FORWARD else len(route) - 1
        if one.kind == WEIGHT or place == first:
            return 0.0  # its own lane alone makes it wait
        return self.arrived.get((_way(one.kind), one.micro_batch, place))

    def _send(self, one: Pass, stage: int, place: int, route: Sequence[Place], end: float) -> tuple[float, int]:
        """Hand the result of a pass on; return when the lane is free, and who may have waited."""
        way = _way(one.kind)
        following = place + 1 if way == FORWARD else place - 1
        if one.kind == WEIGHT or not 0 <= following < len(route):
            return end, -1
        receiver, chunk = route[following]
        hop, link = self._hop(way, stage, receiver, min(place, following))
        begin = end if self.takes.blocking else max(end, self.links.get(link, 0.0))
        arrival = end if receiver == stage else begin + hop
        if arrival > begin:
            carried = ACTIVATIONS if way == FORWARD else GRADIENTS
            self.events.append(Event(stage, P2P, carried, begin, arrival, one.micro_batch, one.chunk, receiver, chunk))
        self.links[link] = arrival
        self.arrived[way, one.micro_batch, following] = arrival
        return arrival if self.takes.blocking else end, receiver

    def _hop(self, way: str, stage: int, receiver: int, joint: int) -> tuple[Seconds, tuple[str, int, int]]:
        """Return how long a transfer takes, and which link it takes."""
        if self.takes.links is None:
            return (self.takes.ahead if way == FORWARD else self.takes.back)[joint], (way, stage, receiver)
        return self.takes.links.get((stage, receiver), 0.0), ("", stage, receiver)


def _way(kind: str) -> str:
    """Return the direction in which the result of a pass goes."""
    return FORWARD if kind == FORWARD else BACKWARD
