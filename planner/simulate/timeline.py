"""A plan's step as it unfolds: what every lane of every stage does when, and how full its memory is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from planner.costs import PlanCost, StageCost
from planner.domain.plan import Plan
from planner.domain.prediction import OPTIMIZER_STEP
from planner.parallelism import AXES
from planner.schedules import BACKWARD, FORWARD, INPUT, schedule_of
from planner.simulate.events import COMPUTE, DP, P2P, Durations, Event, course, run
from planner.simulate.orders import last_exchange
from planner.simulate.predict import replayed
from planner.units import Seconds

GATHER, EXCHANGE, OPTIMIZER, OVERHEAD = "gather_weights", "gradient_exchange", "optimizer", "step_overhead"
"""What is waited for beside passes and transfers; exchange and optimizer are the `sync` of `Prediction.time`."""
NEAR = 1e-6
"""[-] by which times may differ that are alike."""
LANES = (COMPUTE, *(axis.name for axis in AXES), P2P, DP)
"""Lanes of a stage, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One step of a plan; stages of all kinds of pipelines are numbered on, as in `Plan.all_stages`."""

    events: tuple[Event, ...]
    """By stage, lane and start."""
    memory: tuple[tuple[tuple[float, float], ...], ...]
    """Of each stage: ([s], [bytes] from then on) on its fullest device."""
    step_time: Seconds
    """When the last event ends."""
    adds: Seconds
    """What it adds to a run of many steps: less than `step_time` where a step begins before the last one ends."""
    blocking: bool = False
    """Whether a stage does nothing else while it sends."""

    @property
    def is_cut_out(self) -> bool:
        """Whether the step is one of many that run into one another, drawn by itself."""
        return bool(self.adds < (1 - NEAR) * self.step_time)

    @property
    def num_stages(self) -> int:
        """Stages of all kinds of pipelines."""
        return len(self.memory)

    def lane(self, stage: int, lane: str) -> tuple[Event, ...]:
        """Return what one lane does."""
        return tuple(event for event in self.events if event.stage == stage and event.lane == lane)

    @property
    def passes(self) -> tuple[tuple[Event, ...], ...]:
        """The passes of each stage."""
        found: list[list[Event]] = [[] for _ in self.memory]
        for event in self.events:
            if event.lane == COMPUTE and event.micro_batch >= 0:
                found[event.stage].append(event)
        return tuple(tuple(one) for one in found)


def num_passes(plan: Plan) -> int:
    """Return how many passes a step has, forward and backward, on one replica of each kind of pipeline."""
    return sum(2 * one.num_stages * one.virtual_stages * one.num_microbatches for one in plan.pipelines)


def timeline(plan: Plan, costs: PlanCost) -> Timeline:
    """Return what happens in one step of `plan`, by the same rules as `planner.simulate.predict`.

    A replica with all its micro-batches stands for each kind of pipeline. What a pass waits for inside itself, layer by
    layer, is drawn at its end in one piece, shared between forward and backward passes by their length: the sums of the
    lanes are right, the places inside a pass are not known. What hides behind computation is not drawn.
    """
    kinds = list(zip(plan.pipelines, costs.pipelines, strict=True))
    ran = [_ran(one, cost) for one, cost in kinds]
    last = max(_done(found, cost) for found, (_, cost) in zip(ran, kinds, strict=True))
    alone, shared = len(kinds) == 1, max(stage.sync for stage in costs.all_stages)
    events: list[Event] = []
    memory: list[tuple[tuple[float, float], ...]] = []
    ends = 0.0
    for (one, cost), found in zip(kinds, ran, strict=True):
        offset = len(memory)
        by_stage: list[list[Event]] = [[] for _ in one.stages]
        for event in found:
            by_stage[event.stage].append(event)
        for stage, (own, priced) in enumerate(zip(by_stage, cost.stages, strict=True)):
            passes = sorted((event for event in own if event.lane == COMPUTE), key=lambda event: event.start)
            done = _done(own, cost) if alone else last
            end = done + (_exposed(passes, priced, done) if alone else shared)
            ends = max(ends, end)
            spans = [(done, end)]
            if schedule_of(one).updates_each:
                spans = [(event.end, event.end + priced.sync) for event in passes if event.name == BACKWARD]
            after = [event for start, stop in spans for event in _update(stage, priced, start, stop)]
            shares = [run.share for run in priced.hosted] or [1.0 / one.virtual_stages] * one.virtual_stages
            memory.append(tuple(_memory(passes, after, priced, shares)))
            events += [_numbered(event, offset) for event in (*own, *_inside(passes, priced), *after)]
    overhead = costs.step_overhead
    if overhead > 0:
        events += [Event(stage, COMPUTE, OVERHEAD, ends, ends + overhead) for stage in range(len(memory))]
    events.sort(key=lambda event: (event.stage, LANES.index(event.lane), event.start, event.end))
    step_time = ends + overhead
    return Timeline(
        events=tuple(events),
        memory=tuple(memory),
        step_time=step_time,
        adds=_adds(plan, costs, step_time),
        blocking=costs.blocking,
    )


def _adds(plan: Plan, costs: PlanCost, step_time: Seconds) -> Seconds:
    """Return what a step adds to a run of many, by the replay where steps run into one another."""
    listed = [schedule_of(kind) for kind in plan.pipelines]
    if all(one.flushes and not one.joins_steps for one in listed):
        return step_time
    found, sync = replayed(plan, costs)
    return max(one.step_time for one in found) + (sync or 0.0) + costs.step_overhead


def _ran(plan: Plan, costs: PlanCost) -> list[Event]:
    """Return the passes and transfers of one kind of pipeline."""
    orders = course(schedule_of(plan), plan.num_stages, plan.num_microbatches)
    after = tuple(stage.sync for stage in costs.stages) if schedule_of(plan).updates_each else ()
    return run(orders, replace(_durations(plan, costs), after=after))


def _update(stage: int, cost: StageCost, start: float, end: float) -> Iterator[Event]:
    """Yield what a stage does from the `start` of an exchange of gradients until passes may go on."""
    updated = max(start, end - cost.update)
    for lane, name, begun, ended in ((DP, EXCHANGE, start, updated), (COMPUTE, OPTIMIZER, updated, end)):
        if ended > begun:
            yield Event(stage, lane, name, begun, ended)


def _exposed(passes: Sequence[Event], cost: StageCost, done: float) -> Seconds:
    """Return what a stage's exchange takes after its passes are `done`, what has run beside them left out."""
    if not any(run.sync for run in cost.hosted):
        return cost.sync
    ended = {event.chunk: event.end for event in passes}
    return last_exchange(done, sorted((ended[chunk], run.sync) for chunk, run in enumerate(cost.hosted)))


def _durations(plan: Plan, costs: PlanCost) -> Durations:
    """Return how long the passes and transfers of one kind of pipeline take."""
    passes = {}
    for stage, cost in enumerate(costs.stages):
        for chunk, (forward, backward) in enumerate(cost.passes):
            passes["F", stage, chunk], passes["B", stage, chunk] = forward, backward
        for chunk, hosted in enumerate(cost.hosted):
            whole, weight = hosted.backward, hosted.weight
            times = {"F": hosted.forward, "B": whole, "I": whole - weight, "W": weight}
            passes |= {(kind, stage, chunk): time for kind, time in times.items()}
    rounds = (*costs.hops, *([costs.wrap] if costs.wrap else [])) * plan.virtual_stages
    joints = rounds[: plan.num_stages * plan.virtual_stages - 1]
    return Durations(
        passes=passes,
        ahead=[hop.forward for hop in joints],
        back=[hop.backward for hop in joints],
        blocking=costs.blocking,
        links=costs.links if costs.stages[0].hosted else None,
    )


def _done(events: Sequence[Event], costs: PlanCost) -> float:
    """Return when the passes have ended [s], and what their stages wait for after them."""
    return max(event.end for event in events if costs.blocking or event.lane == COMPUTE)


def _numbered(event: Event, offset: int) -> Event:
    """Return an event of a kind of pipeline with its stages numbered on."""
    other = event.other + offset if event.other >= 0 else event.other
    return event._replace(stage=event.stage + offset, other=other) if offset else event


def _inside(passes: Sequence[Event], cost: StageCost) -> Iterator[Event]:
    """Yield what the passes of a stage wait for inside themselves, each lane's at the end of its pass."""
    parts, whole = dict(cost.parts), cost.forward + cost.backward
    lanes = [*((axis.name, axis.part) for axis in AXES), (DP, GATHER)]
    shares = [(lane, part, parts[part] / whole) for lane, part in lanes if parts.get(part, 0.0) > 0]
    for one in passes:
        for lane, part, share in shares:
            start = one.end - share * (one.end - one.start)
            yield Event(one.stage, lane, part, start, one.end, one.micro_batch, one.chunk)


def _memory(
    passes: Sequence[Event], after: Sequence[Event], cost: StageCost, shares: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Yield ([s], [bytes]) whenever the memory of a stage changes.

    A micro-batch is held from the beginning of its forward pass to the end of its backward one (of the gradient of the
    weights, where that runs apart), by the `shares` of the chunks. The optimizer's peak is that of a step after the
    first, with what is held besides.
    """
    levels, held = cost.levels, [0] * len(shares)
    points = [(0.0, levels.resident)]
    stepping = dict(cost.peaks)[OPTIMIZER_STEP] - cost.held_at_update * levels.held

    def change(time: float, size: float) -> None:
        if points[-1][0] == time:
            points.pop()
        if not points or points[-1][1] != size:
            points.append((time, size))

    updates = (event for event in after if event.name == OPTIMIZER)
    activations = 0.0
    for one in sorted([*passes, *updates], key=attrgetter("start")):
        if one.name == OPTIMIZER:
            change(one.start, max(levels.resident, stepping) + activations)
        else:
            if one.name == FORWARD:
                held[one.chunk] += 1
                activations = _weighed(held, shares) * levels.held
            change(one.start, levels.resident + levels.working + activations)
            if one.name not in {FORWARD, INPUT}:
                held[one.chunk] -= 1
                activations = _weighed(held, shares) * levels.held
        change(one.end, levels.resident + activations)
    yield from points


def _weighed(held: Sequence[int], shares: Sequence[float]) -> float:
    """Return the micro-batches held [-], a chunk counting as its share of the layers."""
    return sum(number * share for number, share in zip(held, shares, strict=True))
