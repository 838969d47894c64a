"""The events of a step: they end when the prediction says, and fill memory as high as it says."""

# ruff: noqa: S311 (plans are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from builders import Planning, cluster, framework, group, job, model
from pipelines import SPELLED
from planner.costs import Hop, PlanCost, StageCost, plan_cost
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import FORWARD_BACKWARD
from planner.schedules import SCHEDULES, Schedule, schedule
from planner.simulate import Timeline, predict, timeline
from planner.simulate.events import COMPUTE, DP, P2P, Course, Durations, Event, Pass, course, run


def drawn_stages(draw: random.Random, layers: int, num_stages: int, chunks: int, split: bool) -> tuple[Stage, ...]:
    """Return stages that share out all layers, chunk by chunk."""
    cuts = sorted(draw.sample(range(1, layers), num_stages * chunks - 1))
    runs = [(first, last - 1) for first, last in pairwise([0, *cuts, layers])]
    stages = []
    for index in range(num_stages):
        own = runs[index::num_stages]
        count = sum(last - first + 1 for first, last in own)
        stages.append(
            Stage(
                group=draw.choice(("g0", "g1")),
                first_layer=own[0][0],
                last_layer=own[0][1],
                later_chunks=tuple(own[1:]),
                strategy=Strategy(degrees=(("tp", draw.choice((1, 2, 4))),), sequence_parallel=draw.random() < 0.5),
                recompute=draw.choice(("none", "selective")),
                num_recomputed=draw.randint(0, count) // chunks * chunks,
                split=draw.choice((1, 2)) if split else 1,
            )
        )
    return tuple(stages)


def drawn_plan(draw: random.Random, layers: int, *, alone: bool = True) -> Plan:
    """Return a plan that any schedule may have, without regard to devices; not `alone`, one of unlike pipelines."""
    listed = draw.choice(SPELLED)
    chunks = draw.choice((2, 3)) if listed.with_chunks else 1
    num_stages = draw.randint(2 if chunks > 1 else 1, 4)
    batches = num_stages * draw.randint(1, 6) if chunks > 1 else draw.randint(1, 24)
    plan = Plan(
        stages=drawn_stages(draw, layers, num_stages, chunks, split=draw.random() < 0.3),
        schedule=listed.name,
        num_replicas=draw.choice((1, 2, 3)),
        micro_batch=draw.choice((2, 4)),
        num_microbatches=batches,
        zero_stage=draw.choice((0, 1, 3)),
        virtual_stages=chunks,
    )
    return plan if alone else replace(plan, other_pipelines=(drawn_plan(draw, layers),))


def drawn(seed: int) -> tuple[Planning, Plan, PlanCost]:
    """Return a random plan on two unlike groups, with its costs."""
    draw = random.Random(seed)
    layers = draw.randint(12, 20)
    blocking = draw.random() < 0.5
    asked = Planning(
        cluster=cluster(group("g0", nodes=4, speed=2.0), group("g1", nodes=4, inter=draw.choice((1e9, 1e8)))),
        model=model(layers),
        job=job(8),
        framework=framework(
            step_overhead=draw.choice((0.0, 0.01)),
            outside_allocator=draw.choice((0.0, 1e9)),
            fragmentation=draw.choice((1.0, 1.1)),
            blocking_transfers=blocking,
        ),
    )
    plan = drawn_plan(draw, layers, alone=draw.random() < 0.7)
    return asked, plan, plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)


@pytest.mark.parametrize("seed", range(150))
def test_the_events_are_those_of_the_prediction(seed: int) -> None:
    """They end with the predicted step, and memory peaks in the passes where it is predicted to."""
    asked, plan, costs = drawn(seed)
    prediction = predict(plan, costs, asked.cluster, asked.model, asked.job)
    found = timeline(plan, costs)
    assert found.step_time == pytest.approx(prediction.step_time, rel=1e-9)
    assert max(event.end for event in found.events) == pytest.approx(found.step_time, rel=1e-12)
    for passes, memory, stage in zip(found.passes, found.memory, prediction.stages, strict=True):
        in_passes = [size for time, size in memory if time < passes[-1].end]
        assert max(in_passes) == pytest.approx(dict(stage.peaks)[FORWARD_BACKWARD], rel=1e-9)


LISTED = tuple(listed for listed in SCHEDULES if listed.orders is not None)


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.name)
def test_passes_that_are_given_take_what_is_predicted(listed: Schedule) -> None:
    """With unlike stages and chunks, links, and exchanges of either kind: the same step, and memory as full.

    Where steps run into one another, the timeline shows one with its beginning and its end, and knows what it adds.
    """
    for sizes in ((4, 4, 4, 4), (5, 3, 6, 2), (2, 6, 3, 5)):
        asked = Planning(
            cluster=cluster(group("g0", nodes=4, speed=2.0), group("g1", nodes=4, inter=1e8)),
            model=model(sum(sizes)),
            job=job(32),
            framework=framework(step_overhead=0.01, outside_allocator=1e9, fragmentation=1.1),
        )
        plan = listed_plan(listed, sizes)
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        prediction, found = predict(plan, costs, asked.cluster, asked.model, asked.job), timeline(plan, costs)
        assert found.adds == pytest.approx(prediction.step_time, rel=1e-9)
        assert found.is_cut_out == (listed.joins_steps or not listed.flushes)
        if not found.is_cut_out:
            assert found.step_time == pytest.approx(prediction.step_time, rel=1e-9)
        for passes, memory, stage in zip(found.passes, found.memory, prediction.stages, strict=True):
            in_passes = [size for time, size in memory if time < passes[-1].end]
            assert max(in_passes) == pytest.approx(dict(stage.peaks)[FORWARD_BACKWARD], rel=1e-9)


def listed_plan(listed: Schedule, sizes: tuple[int, ...]) -> Plan:
    """Return a plan of four stages, two on each group, that hold what the schedule places on them.

    `sizes` are layers of the stages; with two chunks, each of them has its part of a stage's, not always the same.
    """
    chunks = listed.virtual_stages
    runs = list(sizes) if chunks == 1 else [size - 1 - size // 3 for size in sizes]
    if chunks == 2:
        runs += [1 + size // 3 for size in reversed(sizes)]
    ends = list(accumulate(runs))
    stages = []
    for index, hosted in enumerate(listed.hosted(4)):
        own = [(ends[number] - runs[number], ends[number] - 1) for direction, number in hosted if direction == 0]
        stages.append(
            Stage(
                group=("g0", "g1")[index // 2] if listed.directions == 1 else "g0",
                first_layer=own[0][0],
                last_layer=own[0][1],
                later_chunks=tuple(own[1:]),
                strategy=Strategy(degrees=(("tp", 2),)),
                num_recomputed=index % 2,
            )
        )
    return Plan(
        stages=tuple(stages),
        schedule=listed.name,
        num_replicas=2,
        micro_batch=1,
        num_microbatches=16,
        zero_stage=1,
        virtual_stages=chunks,
    )


@pytest.mark.parametrize("seed", range(0, 150, 5))
def test_lanes_do_one_thing_at_a_time(seed: int) -> None:
    """Compute and exchanges never overlap themselves; every pass of every micro-batch is run once each way."""
    _, plan, costs = drawn(seed)
    found = timeline(plan, costs)
    for stage in range(found.num_stages):
        for lane in (COMPUTE, "tp", DP):
            for before, after in pairwise(found.lane(stage, lane)):
                assert before.end <= after.start + 1e-12
    stages = iter(found.passes)
    for kind in plan.pipelines:
        wanted = {
            (name, micro_batch, chunk)
            for name in "FB"
            for micro_batch in range(kind.num_microbatches)
            for chunk in range(kind.virtual_stages)
        }
        for _ in kind.stages:
            passes = next(stages)
            assert {(one.name, one.micro_batch, one.chunk) for one in passes} == wanted
            assert len(passes) == len(wanted)


@pytest.mark.parametrize("seed", range(0, 150, 5))
def test_a_pass_begins_when_its_input_has_arrived(seed: int) -> None:
    """Each transfer begins when its pass has ended, and the pass that it feeds begins when it has."""
    _, plan, costs = drawn(seed)
    found = timeline(plan, costs)
    starts = {(one.stage, one.name, one.micro_batch, one.chunk): one for passes in found.passes for one in passes}
    for event in found.events:
        if event.lane != P2P:
            continue
        kind = "F" if event.name == "activations" else "B"
        sent = starts[event.stage, kind, event.micro_batch, event.chunk]
        fed = starts[event.other, kind, event.micro_batch, event.other_chunk]
        assert sent.end <= event.start + 1e-12
        assert event.end <= fed.start + 1e-12


def by_hand() -> Timeline:
    """Two stages, f = 1, b = 2 s, transfers of 0.5 s, sync 1 and 3 s, 0.25 s of overhead, two micro-batches, 1f1b."""
    plan = Plan(
        stages=tuple(Stage(group="g", first_layer=i, last_layer=i, strategy=Strategy()) for i in range(2)),
        schedule="1f1b",
        num_replicas=1,
        micro_batch=1,
        num_microbatches=2,
        zero_stage=0,
    )
    first = StageCost(
        forward=1.0,
        backward=2.0,
        sync=1.0,
        memory=(),
        peaks=(("forward_backward", 9.0), ("optimizer_creation", 5.0), ("optimizer_step", 6.0)),
        parts=(("tensor_collectives", 0.75), ("matmul", 2.25)),
        in_flight=2,
    )
    return timeline(
        plan,
        PlanCost(
            stages=(first, replace(first, sync=3.0, update=1.0)),
            hops=(Hop(forward=0.5, backward=0.5),),
            step_overhead=0.25,
        ),
    )


def test_a_step_by_hand() -> None:
    """F0 0-1, F1 1-2 on stage 0; F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5, B1 5.5-7.5 on stage 1; B0 5-7, B1 8-10 on stage 0.

    Stage 1 exchanges gradients from 7.5 to 9.5 and updates until 10.5, stage 0 exchanges from 10 to 11. A quarter of
    each pass is exchange: the last 0.25 s of F0.
    """
    found = by_hand()
    spans = [(one.name, one.start, one.end) for one in found.passes[0]]
    assert spans == [("F", 0.0, 1.0), ("F", 1.0, 2.0), ("B", 5.0, 7.0), ("B", 8.0, 10.0)]
    spans = [(one.name, one.start, one.end) for one in found.passes[1]]
    assert spans == [("F", 1.5, 2.5), ("B", 2.5, 4.5), ("F", 4.5, 5.5), ("B", 5.5, 7.5)]
    assert found.lane(0, P2P)[1] == Event(0, P2P, "activations", 2.0, 2.5, 1, 0, 1, 0)
    assert found.lane(1, P2P)[0] == Event(1, P2P, "gradients", 4.5, 5.0, 0, 0, 0, 0)
    assert found.lane(1, DP) == (Event(1, DP, "gradient_exchange", 7.5, 9.5),)
    assert found.lane(1, COMPUTE)[-2] == Event(1, COMPUTE, "optimizer", 9.5, 10.5)
    assert found.lane(0, "tp")[0] == Event(0, "tp", "tensor_collectives", 0.75, 1.0, 0, 0)
    assert found.step_time == 11.25
    assert found.lane(1, COMPUTE)[-1] == Event(1, COMPUTE, "step_overhead", 11.0, 11.25)


def test_halves_of_a_backward_pass() -> None:
    """Two stages, F, I and W of 1 s, no transfers: W1 and W0 run while nobody waits for them.

    Stage 1: F0 1-2, I0 2-3, W0 3-4. Stage 0: F0 0-1, I0 3-4, W0 4-5.
    """
    order = tuple(Pass(kind, 0, 0) for kind in "FIW")
    takes = Durations(passes={(kind, stage, 0): 1.0 for kind in "FIW" for stage in range(2)}, ahead=[0.0], back=[0.0])
    found = run(Course(orders=(order, order), route=((0, 0), (1, 0))), takes)
    assert {(one.stage, one.name): one.start for one in found} == {
        (0, "F"): 0.0,
        (1, "F"): 1.0,
        (1, "I"): 2.0,
        (0, "I"): 3.0,
        (1, "W"): 3.0,
        (0, "W"): 4.0,
    }


def test_chunks_that_turn_back() -> None:
    """A route may turn at the last stage and come back (a V): its two chunks there hand over without a transfer.

    Stage 0 runs chunks 0 and 1, the first and the last of the route; passes of 1 s, transfers of 0.5 s. Forward: 0-1,
    then 1.5-2.5 and 2.5-3.5 on stage 1, 4-5 on stage 0; backward the same way back.
    """
    orders = (
        (Pass("F", 0, 0), Pass("F", 0, 1), Pass("B", 0, 1), Pass("B", 0, 0)),
        (Pass("F", 0, 0), Pass("F", 0, 1), Pass("B", 0, 1), Pass("B", 0, 0)),
    )
    takes = Durations(
        passes={(kind, stage, chunk): 1.0 for kind in "FB" for stage in range(2) for chunk in range(2)},
        ahead=[0.5, 0.5, 0.5],
        back=[0.5, 0.5, 0.5],
    )
    found = run(Course(orders=orders, route=((0, 0), (1, 0), (1, 1), (0, 1))), takes)
    passes = [(one.stage, one.start) for one in found if one.lane == COMPUTE and one.name == "F"]
    assert sorted(passes, key=lambda one: one[1]) == [(0, 0.0), (1, 1.5), (1, 2.5), (0, 4.0)]
    assert max(one.end for one in found) == 10.0


def test_interleaved_micro_batches_in_groups() -> None:
    """Two stages with two chunks take micro-batches 0, 1 through chunk 0, then chunk 1; then 2, 3."""
    order = course(schedule("interleaved"), 2, 4).orders[0]
    forward = [(one.micro_batch, one.chunk) for one in order if one.kind == "F"]
    backward = [(one.micro_batch, one.chunk) for one in order if one.kind == "B"]
    assert forward == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)]
    assert backward == [(0, 1), (1, 1), (0, 0), (1, 0), (2, 1), (3, 1), (2, 0), (3, 0)]


def test_orders_that_wait_for_one_another_are_our_bug() -> None:
    """Stage 0 wants its gradient before it has sent all that stage 1 asks for first."""
    orders = ((Pass("F", 0, 0), Pass("B", 0, 0), Pass("F", 1, 0)), (Pass("F", 1, 0), Pass("B", 0, 0)))
    takes = Durations(passes={(kind, stage, 0): 1.0 for kind in "FB" for stage in range(2)}, ahead=[0.0], back=[0.0])
    with pytest.raises(AssertionError, match="stage 0, stage 1 wait for inputs"):
        run(Course(orders=orders, route=((0, 0), (1, 0))), takes)


def test_memory_by_hand() -> None:
    """10 bytes stay, 3 come with a pass, 2 with each micro-batch in flight; the optimizer step needs 14.

    Stage 0 of 1f1b: F0 holds 1, F1 2; between F1 and B0 both stay, then they leave one by one.
    """
    from planner.costs.levels import Levels
    from planner.simulate.timeline import _memory

    cost = StageCost(
        forward=1.0,
        backward=1.0,
        sync=1.0,
        memory=(),
        peaks=(("forward_backward", 17.0), ("optimizer_creation", 12.0), ("optimizer_step", 14.0)),
        parts=(),
        in_flight=2,
        levels=Levels(resident=10.0, working=3.0, held=2.0),
    )
    times = (("F", 0.0, 0), ("F", 1.0, 1), ("B", 3.0, 0), ("B", 4.0, 1))
    passes = [Event(0, COMPUTE, kind, start, start + 1, number, 0) for kind, start, number in times]
    found = tuple(_memory(passes, [Event(0, COMPUTE, "optimizer", 5.0, 6.0)], cost, [1.0]))
    assert found == ((0.0, 15.0), (1.0, 17.0), (2.0, 14.0), (3.0, 17.0), (4.0, 15.0), (5.0, 14.0), (6.0, 10.0))
