"""A step as Chakra execution traces, one for each rank, for simulators of networks such as ASTRA-sim.

Source: MLCommons Chakra, ``schema/protobuf/et_def.proto`` (commit 21585d8): a file is a ``GlobalMetadata`` and ``Node``
messages, each behind its length. Attributes have the types that ASTRA-sim reads (``et_feeder_node.cpp`` there and
``Workload.cc`` of ASTRA-sim, commit 518bd51). What a simulator is to find out, the time of transfers and of the
exchange of gradients, is left to it; passes have the predicted time, with what tensor and context ranks exchange
inside them. The exchange comes after the last pass as one all-reduce, nothing of it hidden; where a schedule runs from
both ends, with the ranks that hold the same layers for the other direction. Of two passes that run at once the first
waits for the inputs of both, and what both hand on leaves after the second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.domain.plan import Plan
from planner.errors import SpecError
from planner.report.protobuf import always, delimited, integer, nested, packed, text
from planner.report.window import pass_name
from planner.schedules import BACKWARD, FORWARD, WEIGHT, schedule_of
from planner.simulate import Event, Timeline
from planner.simulate.events import ACTIVATIONS, P2P, Pass, course
from planner.simulate.timeline import OPTIMIZER, OVERHEAD
from planner.units import MICROSECOND, Bytes

if TYPE_CHECKING:
    from planner.placement import Placement, Rank

COMPUTES, SENDS, RECEIVES, COLLECTIVE = 4, 5, 6, 7
"""``NodeType``."""
ALL_REDUCE = 0
"""``CollectiveCommType``."""
INT32, INT64, BOOL, STRING = 7, 9, 27, 29
"""Fields of ``AttributeProto`` by the type of the value."""
SCHEMA = "1.0.0"
GROUPS = "comm_groups.json"
"""The file that tells which ranks exchange gradients, as ASTRA-sim's ``--comm-group-configuration`` takes it."""
MOST_NODES = 1_000_000
"""Nodes of all traces together, some 60 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is sent [bytes], by stage."""

    handed: tuple[Bytes, ...]
    """Of one micro-batch to a neighbour, by all ranks of the stage in one replica."""
    rings: tuple[Bytes, ...]
    """In one step by a rank to the next one that holds the same weights."""
    blocking: bool
    """Whether a rank waits until what it sends has left."""


def chakra_traces(plan: Plan, found: Timeline, placed: Placement, sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the file of groups and of each rank's trace.

    Raises:
        SpecError: replicas differ, or the traces would be too many and too long.

    """
    _refuse(plan, found)
    where = {(rank.replica, rank.stage, rank.cp_rank, rank.tp_rank): rank.rank for rank in placed.ranks}
    groups = _groups(plan, placed.ranks)
    orders = course(schedule_of(plan), plan.num_stages, plan.num_microbatches).orders
    numbers = {members: str(number) for number, members in enumerate(dict.fromkeys(groups.values()), 1)}
    listed = {number: list(members) for members, number in numbers.items() if len(members) > 1}
    yield GROUPS, f"{json.dumps(listed)}\n".encode()
    transfers = [event for event in found.events if event.lane == P2P]
    for rank in placed.ranks:
        members = groups[rank.rank]
        updates = schedule_of(plan).updates(plan.num_microbatches)
        trace = _Trace(plan, rank, where, sizes, transfers, numbers[members], len(members), updates)
        own = [event for event in found.events if event.stage == rank.stage]
        trace.run(orders[rank.stage], found.passes[rank.stage], [event for event in own if event.name == OPTIMIZER])
        trace.finish(own)
        yield f"step.{rank.rank}.et", b"".join([delimited(text(1, SCHEMA)), *trace.written])


def _refuse(plan: Plan, found: Timeline) -> None:
    if not plan.has_even_replicas:
        raise SpecError.of("--format chakra", "cannot tell of replicas that differ; plan with -c 'replicas = equal'")
    nodes = sum(
        plan.num_replicas * stage.num_devices * sum(event.stage == index for event in found.events)
        for index, stage in enumerate(plan.stages)
    )
    if nodes > MOST_NODES:
        raise SpecError.of(
            "--format chakra",
            f"would write about {nodes:,} nodes, of at most {MOST_NODES:,}; plan fewer devices or micro-batches",
        )


def _groups(plan: Plan, ranks: Sequence[Rank]) -> dict[int, tuple[int, ...]]:
    """Return rank -> the ranks that hold the same weights: with two directions those of the facing stage, too."""
    held = [frozenset(number for _, number in hosted) for hosted in schedule_of(plan).hosted(plan.num_stages)]
    alike: dict[tuple[frozenset[int], int], list[int]] = {}
    for rank in ranks:
        alike.setdefault((held[rank.stage], rank.tp_rank), []).append(rank.rank)
    return {rank.rank: tuple(alike[held[rank.stage], rank.tp_rank]) for rank in ranks}


@dataclass(slots=True)
class _Trace:
    """The trace of one rank, written node by node."""

    plan: Plan
    rank: Rank
    where: dict[tuple[int, int, int, int], int]
    """(replica, stage, context rank, tensor rank) -> rank."""
    sizes: Sizes
    transfers: Sequence[Event]
    group: str
    """Number of the ranks that exchange gradients."""
    ranks: int
    """How many these are."""
    updates: int
    """Of the weights in a step: 1, or one behind each backward pass."""
    written: list[bytes] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    """What the next node on the compute lane waits for."""

    def run(self, order: Sequence[Pass], passes: Sequence[Event], updates: Sequence[Event]) -> None:
        """Write the passes in their order; around each, or each pair, what it receives and sends, and the updates."""
        stage = self.rank.stage
        sent, fed = {}, {}
        for tag, event in enumerate(self.transfers):
            way = event.name == ACTIVATIONS
            if event.stage == stage:
                sent[way, event.micro_batch, event.chunk] = tag
            if event.other == stage:
                fed[way, event.micro_batch, event.other_chunk] = tag
        times = {(event.name, event.micro_batch, event.chunk): event for event in passes}
        update = iter(updates)
        for together in _together(order):
            places = [(one.kind == FORWARD, one.micro_batch, one.chunk) for one in together if one.kind != WEIGHT]
            received = [fed[place] for place in places if place in fed]
            leaves = [sent[place] for place in places if place in sent]
            inputs = [node for tag in received for node in self._transfer(RECEIVES, tag, [])]
            for one in together:
                event = times[one.kind, one.micro_batch, one.chunk]
                done = self._compute(pass_name(event, self.plan.virtual_stages), event, inputs)
                self.before, inputs = [done], []
            outputs = [node for tag in leaves for node in self._transfer(SENDS, tag, self.before)]
            self.before += outputs if self.sizes.blocking else []
            if self.updates > 1 and together[-1].kind == BACKWARD:
                self._exchange()
                self.before = [self._compute(OPTIMIZER, next(update), [])]

    def _exchange(self) -> None:
        """Write the exchange of gradients of an update as one all-reduce that sends as much."""
        ring, ranks = self.sizes.rings[self.rank.stage] / self.updates, self.ranks
        if ranks < 2 or not ring:
            return
        size = round(ring * ranks / (2 * (ranks - 1)))
        attributes = [_attribute("comm_type", INT64, ALL_REDUCE), _attribute("comm_size", INT64, size)]
        attributes.append(_attribute("pg_name", STRING, self.group))
        self.before = [self._node("gradient exchange", COLLECTIVE, self.before, attributes)]

    def finish(self, events: Sequence[Event]) -> None:
        """Write what comes after the last pass: exchange and update of a step that has one, and the overhead."""
        if self.updates == 1:
            self._exchange()
        after = {OPTIMIZER, OVERHEAD} if self.updates == 1 else {OVERHEAD}
        for event in events:
            if event.name in after:
                self.before = [self._compute(event.name, event, [])]

    def _compute(self, name: str, event: Event, inputs: Sequence[int]) -> int:
        time = max(1, round((event.end - event.start) / MICROSECOND))
        return self._node(name, COMPUTES, [*self.before, *inputs], [], integer(7, time))

    def _transfer(self, kind: int, tag: int, inputs: Sequence[int]) -> Iterator[int]:
        """Write what is sent to, or received from, each rank of the other stage."""
        event = self.transfers[tag]
        here, there = (event.stage, event.other) if kind == SENDS else (event.other, event.stage)
        widths = [self.plan.stages[stage].num_devices for stage in (here, there)]
        size = max(1, round(self.sizes.handed[event.stage] / max(widths)))
        inner = self.rank.cp_rank * self.plan.stages[here].strategy.degree("tp") + self.rank.tp_rank
        tp = self.plan.stages[there].strategy.degree("tp")
        for other in _partners(inner, *widths):
            partner = self.where[self.rank.replica, there, other // tp, other % tp]
            ends = (self.rank.rank, partner) if kind == SENDS else (partner, self.rank.rank)
            attributes = [
                _attribute("comm_src", INT32, ends[0]),
                _attribute("comm_dst", INT32, ends[1]),
                _attribute("comm_size", INT64, size),
                _attribute("comm_tag", INT32, tag),
            ]
            name = f"{'send' if kind == SENDS else 'receive'} {event.name} {event.micro_batch}"
            yield self._node(name, kind, inputs, attributes)

    def _node(self, name: str, kind: int, inputs: Sequence[int], attributes: Sequence[bytes], more: bytes = b"") -> int:
        """Write a node and return its number."""
        number = len(self.written)
        on_device = _attribute("is_cpu_op", BOOL, 0)
        fields = (
            integer(1, number),
            text(2, name),
            integer(3, kind),
            packed(5, inputs),
            more,
            *(nested(10, attribute) for attribute in (on_device, *attributes)),
        )
        self.written.append(delimited(b"".join(fields)))
        return number


def _together(order: Sequence[Pass]) -> Iterator[tuple[Pass, ...]]:
    """Yield the passes of a stage, those that run at once together."""
    at = 0
    while at < len(order):
        number = 1 + order[at].paired
        yield tuple(order[at : at + number])
        at += number


def _partners(inner: int, here: int, there: int) -> range:
    """Return the ranks of a stage `there` wide that rank `inner` of one `here` wide exchanges with."""
    if here >= there:
        partner = inner * there // here
        return range(partner, partner + 1)
    return range(inner * there // here, (inner + 1) * there // here)


def _attribute(name: str, kind: int, value: int | str) -> bytes:
    """Return an ``AttributeProto``."""
    return text(1, name) + (text(kind, value) if isinstance(value, str) else always(kind, value))
