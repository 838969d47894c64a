"""Chakra execution traces: what they say, read by a reader of its own and run on a network that takes no time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate

import pytest

from planner.costs import Hop, plan_cost
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import SpecError
from planner.pipeline.observed import traces
from planner.placement import place
from planner.report import chakra, protobuf
from planner.schedules import SCHEDULES, Schedule, schedule
from planner.simulate import Timeline, timeline
from planner.specs import catalog
from report.report_cases import Case

COMPUTES, SENDS, RECEIVES, COLLECTIVE = 4, 5, 6, 7


@dataclass
class Node:
    """A node of a trace, read."""

    number: int = 0
    name: str = ""
    kind: int = 0
    inputs: list[int] = field(default_factory=list)
    time: int = 0
    attributes: dict[str, int | str] = field(default_factory=dict)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field, value) of a message."""
    at = 0
    while at < len(data):
        head, at = varint(data, at)
        value, at = varint(data, at)
        if head & 7 == 2:
            yield head >> 3, data[at : at + value]
            at += value
        else:
            assert head & 7 == 0
            yield head >> 3, value


def messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a file."""
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield data[at : at + size]
        at += size


def attribute(data: bytes) -> tuple[str, int | str]:
    found = dict(fields(data))
    name = found.pop(1)
    ((_, value),) = found.items()
    assert isinstance(name, bytes)
    return name.decode(), value.decode() if isinstance(value, bytes) else value


def node(data: bytes) -> Node:
    """Return a node, by the numbers of ``et_def.proto``."""
    made = Node()
    for number, value in fields(data):
        if isinstance(value, int):
            setattr(made, {1: "number", 3: "kind", 7: "time"}[number], value)
        elif number == 2:
            made.name = value.decode()
        elif number == 5:
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                made.inputs.append(one)
        else:
            assert number == 10
            name, what = attribute(value)
            made.attributes[name] = what
    return made


def read(case: Case, plan: Plan) -> tuple[dict[str, list[int]], dict[int, list[Node]]]:
    """Return the groups, and the nodes of each rank."""
    groups: dict[str, list[int]] = {}
    ranks: dict[int, list[Node]] = {}
    for name, content in traces(plan, case.cluster, case.model, case.job):
        if name == "comm_groups.json":
            groups = json.loads(content)
            continue
        head, *rest = messages(content)
        assert dict(fields(head)) == {1: b"1.0.0"}
        ranks[int(name.split(".")[1])] = [node(one) for one in rest]
    return groups, ranks


def ended(ranks: dict[int, list[Node]]) -> float:
    """Return [us] when the last node of all ranks ends if nothing but computation takes time.

    One computation at a time on each rank, the first that may run, as in ASTRA-sim.
    """
    done: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int | str, ...], float] = {}
    free = dict.fromkeys(ranks, 0.0)
    left = {rank: list(nodes) for rank, nodes in ranks.items()}
    ran = True
    while ran:
        ran = False
        for rank, nodes in left.items():
            for one in list(nodes):
                if any((rank, number) not in done for number in one.inputs):
                    continue
                ready = max([done[rank, number] for number in one.inputs], default=0.0)
                if one.kind == COMPUTES:
                    ready = free[rank] = max(free[rank], ready) + one.time
                channel = tuple(one.attributes.get(name, 0) for name in ("comm_src", "comm_dst", "comm_tag"))
                if one.kind == SENDS:
                    sent[channel] = ready
                if one.kind == RECEIVES:
                    if channel not in sent:
                        continue
                    ready = max(ready, sent[channel])
                done[rank, one.number] = ready
                nodes.remove(one)
                ran = True
    assert not any(left.values()), "ranks wait for one another"
    return max(done.values())


@pytest.fixture(scope="module", params=["alike", "narrower", "replicas", "updates", "chunks"])
def plan(request: pytest.FixtureRequest, mixed: Case) -> Plan:
    """Three stages; the last one narrower; three replicas; updates after each micro-batch; two chunks a stage."""
    base = replace(mixed.plan([("h100", 70), ("a100", 40), ("l40s", 16)]), num_microbatches=6, num_replicas=1)
    if request.param == "narrower":
        narrow = replace(base.stages[2], strategy=replace(base.stages[2].strategy, degrees=(("tp", 2),)))
        return replace(base, stages=(*base.stages[:2], narrow))
    if request.param == "replicas":
        return replace(base, num_replicas=3)
    if request.param == "updates":
        return replace(base, num_replicas=3, schedule="pipedream")
    if request.param == "chunks":
        stages = tuple(
            replace(
                stage,
                first_layer=21 * index,
                last_layer=21 * index + 20,
                later_chunks=((63 + 21 * index, 83 + 21 * index),),
            )
            for index, stage in enumerate(base.stages)
        )
        return replace(base, stages=stages, schedule="interleaved", virtual_stages=2)
    return base


def assert_two_ends(plan: Plan, ranks: dict[int, list[Node]]) -> None:
    """Check that what one rank sends another receives, once, as large, under the same number; nobody sends itself."""
    assert sorted(ranks) == list(range(plan.num_devices))
    ends: dict[int, Counter[tuple[int | str, ...]]] = {SENDS: Counter(), RECEIVES: Counter()}
    for rank, nodes in ranks.items():
        for one in nodes:
            assert all(number < one.number for number in one.inputs)
            if one.kind in ends:
                names = ("comm_src", "comm_dst", "comm_tag", "comm_size")
                ends[one.kind][tuple(one.attributes[name] for name in names)] += 1
                assert one.attributes["comm_src" if one.kind == SENDS else "comm_dst"] == rank
    assert ends[SENDS] == ends[RECEIVES]
    assert set(ends[SENDS].values()) == {1}
    assert all(one[0] != one[1] for one in ends[SENDS])


def undisturbed(case: Case, plan: Plan) -> Timeline:
    """Return the step if nothing but passes and the optimizer took time."""
    costs = plan_cost(plan, case.cluster, case.model, case.job, catalog.framework("megatron"))
    nothing = Hop(forward=0.0, backward=0.0)
    stages = (
        replace(stage, sync=stage.update, hosted=tuple(replace(one, sync=0.0) for one in stage.hosted))
        for stage in costs.stages
    )
    hops = (nothing,) * len(costs.hops)
    free = replace(costs, hops=hops, wrap=costs.wrap and nothing, blocking=False, stages=tuple(stages))
    return timeline(plan, free)


def test_every_transfer_has_two_ends(mixed: Case, plan: Plan) -> None:
    """For each kind of pipeline of one direction, and of stages of unlike widths."""
    assert_two_ends(plan, read(mixed, plan)[1])


def test_a_network_without_time_leaves_the_passes(mixed: Case, plan: Plan) -> None:
    """Run with free transfers, the traces end when the replay of the plan does; a microsecond may be lost a node."""
    _, ranks = read(mixed, plan)
    most = max(map(len, ranks.values()))
    assert ended(ranks) == pytest.approx(1e6 * undisturbed(mixed, plan).step_time, abs=plan.num_stages * most)


def test_those_that_hold_the_same_weights_exchange(mixed: Case, plan: Plan) -> None:
    """Each group's ranks have one all-reduce of one size before each optimizer step; others have none."""
    groups, ranks = read(mixed, plan)
    members = {rank: group for group, those in groups.items() for rank in those}
    assert len(members) == (plan.num_devices if plan.num_replicas > 1 else 0)
    updates = 6 if plan.schedule == "pipedream" else 1
    sizes: dict[str, set[int | str]] = {}
    for rank, nodes in ranks.items():
        found = [one for one in nodes if one.kind == COLLECTIVE]
        assert [one.attributes["pg_name"] for one in found] == [members.get(rank)] * updates * (rank in members)
        for one in found:
            assert one.attributes["comm_type"] == 0
            sizes.setdefault(str(one.attributes["pg_name"]), set()).add(one.attributes["comm_size"])
            after = next(other for other in nodes if one.number in other.inputs)
            assert after.name == "optimizer"
    assert all(len(one) == 1 for one in sizes.values())


@pytest.fixture(scope="module", params=SCHEDULES, ids=lambda listed: listed.name)
def listed(request: pytest.FixtureRequest) -> Schedule:
    """Each of the schedules, with two chunks where any number may be."""
    one: Schedule = request.param
    return one.with_chunks(2) if one.with_chunks else one


@pytest.fixture(scope="module")
def shaped(small: Case, listed: Schedule) -> Plan:
    """Four stages of unlike sizes on two tensor ranks each, two replicas, 16 micro-batches."""
    return scheduled(small, listed)


def scheduled(case: Case, listed: Schedule) -> Plan:
    """Return a plan of the 32 layers that lie where the schedule places them."""
    sizes = (9, 6, 8, 9) if listed.virtual_stages == 1 else (5, 3, 4, 4, 4, 5, 4, 3)
    ends = list(accumulate(sizes))
    stages = []
    for hosted in listed.hosted(4):
        first, *later = ((ends[number] - sizes[number], ends[number] - 1) for way, number in hosted if way == 0)
        strategy = Strategy(degrees=(("tp", 2),), sequence_parallel=True)
        group = case.cluster.groups[0].name
        stages.append(
            Stage(group=group, first_layer=first[0], last_layer=first[1], later_chunks=tuple(later), strategy=strategy)
        )
    return Plan(
        stages=tuple(stages),
        schedule=listed.name,
        num_replicas=2,
        micro_batch=1,
        num_microbatches=16,
        zero_stage=1,
        virtual_stages=listed.virtual_stages,
    )


def test_every_schedule_can_be_executed(small: Case, shaped: Plan) -> None:
    """Sends meet their receives, nothing waits in a circle, and with free transfers all ends as the replay does.

    A rank computes as long as its stage's passes take; a microsecond may be lost a node.
    """
    _, ranks = read(small, shaped)
    assert_two_ends(shaped, ranks)
    most, free = max(map(len, ranks.values())), undisturbed(small, shaped)
    assert ended(ranks) == pytest.approx(1e6 * free.step_time, abs=shaped.num_stages * most)
    placed = place(shaped, small.cluster, small.model, small.job)
    for rank in placed.ranks:
        passes = [one.time for one in ranks[rank.rank] if one.kind == COMPUTES and one.name[1:2].isdigit()]
        assert len(passes) == len(free.passes[rank.stage])
        worked = sum(one.end - one.start for one in free.passes[rank.stage])
        assert sum(passes) == pytest.approx(1e6 * worked, abs=len(passes))


def test_those_that_hold_the_same_layers_exchange(small: Case, listed: Schedule, shaped: Plan) -> None:
    """The two replicas of a stage; where a schedule has two directions, those of the stage that faces it, too."""
    groups, ranks = read(small, shaped)
    stages = {rank.rank: rank.stage for rank in place(shaped, small.cluster, small.model, small.job).ranks}
    assert sorted(rank for members in groups.values() for rank in members) == sorted(ranks)
    facing = {frozenset({0, 3}), frozenset({1, 2})}
    alone = {frozenset({stage}) for stage in range(4)}
    held = {frozenset(stages[rank] for rank in members) for members in groups.values()}
    assert held == (facing if listed.directions > 1 else alone)
    assert {len(members) for members in groups.values()} == {2 * listed.directions}
    for members in groups.values():
        assert len({exchanged(ranks[rank]) for rank in members}) == 1


def test_both_directions_exchange_the_layers_of_both(small: Case) -> None:
    """As many bytes as stages 0 and 3, or 1 and 2, exchange for themselves in one direction."""
    _, both = read(small, scheduled(small, schedule("chimera")))
    plan = scheduled(small, schedule("1f1b"))
    _, one = read(small, plan)
    stages = {rank.rank: rank.stage for rank in place(plan, small.cluster, small.model, small.job).ranks}
    alone = {stages[rank]: exchanged(nodes) for rank, nodes in one.items()}
    for rank, nodes in both.items():
        assert exchanged(nodes) == pytest.approx(alone[stages[rank]] + alone[3 - stages[rank]], abs=2)


def exchanged(nodes: list[Node]) -> int:
    """Return the bytes of a rank's all-reduces in a step."""
    sizes = [one.attributes["comm_size"] for one in nodes if one.kind == COLLECTIVE]
    assert sizes
    assert len(set(sizes)) == 1
    return sum(size for size in sizes if isinstance(size, int))


def test_bytes_are_those_of_protocol_buffers() -> None:
    """A node as the ``protobuf`` package 7.36 writes it from ``et_def.proto``."""
    made = b"".join(
        (
            protobuf.integer(1, 300),
            protobuf.text(2, "F1"),
            protobuf.integer(3, COMPUTES),
            protobuf.packed(5, [0, 299]),
            protobuf.integer(7, 96098),
            protobuf.nested(10, chakra._attribute("is_cpu_op", chakra.BOOL, 0)),
            protobuf.nested(10, chakra._attribute("pg_name", chakra.STRING, "1")),
        )
    )
    assert (
        made.hex()
        == "08ac021202463118042a0300ab0238e2ee05520e0a0969735f6370755f6f70d80100520d0a0770675f6e616d65ea010131"
    )
    assert protobuf.varint(-1) == b"\xff" * 9 + b"\x01"


def test_what_traces_cannot_tell_is_refused(mixed: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas that differ, and more nodes than anybody reads."""
    plan = mixed.plan([("h100", 126)], dp=4)
    with pytest.raises(SpecError, match="replicas that differ"):
        list(traces(replace(plan, short_replicas=1), mixed.cluster, mixed.model, mixed.job))
    monkeypatch.setattr(chakra, "MOST_NODES", 100)
    with pytest.raises(SpecError, match=r"would write about [0-9,]+ nodes, of at most 100"):
        list(traces(plan, mixed.cluster, mixed.model, mixed.job))
