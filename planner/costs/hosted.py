"""Time and memory of a rank whose schedule is given by its passes: of each virtual stage that it runs, and of all."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from planner.costs.crossing import Beyond
from planner.costs.gathering import gathering_of
from planner.costs.levels import memory_levels
from planner.costs.peaks import largest, stage_peaks, total
from planner.costs.priced import HostedCost, StageCost
from planner.costs.sizes import gathered_bytes
from planner.costs.stage import (
    LayerCosts,
    StageTerms,
    backward_time,
    forward_time,
    predict_time,
    regather_time,
    stage_terms,
    sync_time,
    update_time,
    weight_time,
)
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Number
from planner.domain.plan import Plan
from planner.schedules import Schedule, most_held
from planner.units import Seconds


def hosted_cost(
    plan: Plan,
    listed: Schedule,
    index: int,
    costs: LayerCosts,
    job: Job,
    framework: Framework,
    *,
    num_replicas: int,
    beyond: Beyond | None,
    apart: bool,
) -> StageCost:
    """Return the cost of the rank of stage `index`.

    In direction 1 it runs the layers of the stage that faces it from the other end, on its own devices. Its time of one
    micro-batch is the mean over the directions, each of which has its share of the micro-batches. Replicas that
    exchange gradients are then twice as many, and each exchanges twice the weights.
    """
    hosted, last = listed.hosted(plan.num_stages)[index], plan.num_stages * listed.virtual_stages - 1
    layers = _layers(plan, listed, index)
    everywhere = beyond and replace(beyond, here=beyond.here * listed.directions)
    meet = plan.num_stages > 1 and {0, last} <= {number for _, number in hosted}

    @cache
    def terms_of(first: bool, final: bool) -> StageTerms:
        return stage_terms(
            costs,
            job,
            framework,
            policy=plan.stages[index].recompute,
            num_replicas=num_replicas * listed.directions,
            zero_stage=plan.zero_stage,
            first=first,
            last=final,
            beyond=everywhere,
            apart=apart,
            ends_meet=meet,
            gathering=gathering_of(listed, plan.num_microbatches),
        )

    runs = []
    for place in hosted:
        (size, recomputed), edges = layers[place], (place[1] == 0, place[1] == last)
        terms = terms_of(*edges)
        backward = float(backward_time(terms, size, recomputed))
        runs.append(
            HostedCost(
                direction=place[0],
                stage=place[1],
                forward=float(forward_time(terms, size)),
                backward=backward,
                weight=float(weight_time(terms, size)),
                share=size / sum(number for number, _ in layers.values()),
                sync=float(sync_time(terms, size, backward)) if listed.eager_sync else 0.0,
            )
        )
    ends = any(number == 0 for _, number in hosted), any(number == last for _, number in hosted)
    whole = terms_of(*ends)
    if whole.gathered_layer:  # chunks may be unequal, and the largest one counts
        chunks = (
            size * costs.body.parameters + costs.edge_parameters(first=number == 0, last=number == last)
            for (_, number), (size, _) in layers.items()
        )
        whole = replace(whole, gathered=float(gathered_bytes(framework, job, max(chunks))), gathered_layer=0.0)
    size, shape = sum(number for number, _ in layers.values()), (index, plan.num_stages, plan.num_microbatches)
    predictions = listed.predictions(*shape)
    prediction = predictions * predict_time(whole, size)
    if predictions and not listed.shares_weights(*shape):
        prediction += regather_time(whole, size)
    return _together(plan, listed, index, whole, layers, tuple(runs), float(prediction))


def _together(
    plan: Plan,
    listed: Schedule,
    index: int,
    terms: StageTerms,
    layers: dict[tuple[int, int], tuple[int, float]],
    runs: tuple[HostedCost, ...],
    prediction: Seconds,
) -> StageCost:
    """Return the cost of all that a rank runs, whose coefficients together are `terms`.

    Where steps are not waited for, the optimizer steps when a micro-batch has just gone back and others are in flight.
    """
    size, recomputed = sum(size for size, _ in layers.values()), sum(number for _, number in layers.values())
    held = most_held(
        listed.passes(plan.num_stages, plan.num_microbatches)[index],
        {place: float(number) for place, (number, _) in layers.items()},
    )
    backward = sum(run.backward for run in runs)
    number = listed.weight_versions(index, plan.num_stages, plan.num_microbatches)
    versions = replace(terms, weights_layer=number * terms.weights_layer, weights_edge=number * terms.weights_edge)
    at_update = 0.0 if listed.flushes else held / size - 1.0
    peaks = stage_peaks(versions, size, recomputed, held / size, at_update)
    sync = sum(run.sync for run in runs) if listed.eager_sync else float(sync_time(terms, size, backward))
    share = 1.0 / listed.directions
    return StageCost(
        forward=share * sum(run.forward for run in runs),
        backward=share * backward,
        sync=sync + prediction,
        memory=tuple((name, float(number)) for name, number in largest(parts for _, parts in peaks)),
        peaks=tuple((name, float(total(parts))) for name, parts in peaks),
        parts=tuple((name, share * seconds) for name, seconds in time_parts(terms, size, recomputed)),
        in_flight=listed.directions * held / size,
        levels=memory_levels(versions, size, recomputed),
        update=float(update_time(terms, size)) + prediction,
        prediction=prediction,
        held_at_update=at_update,
        hosted=runs,
    )


def _layers(plan: Plan, listed: Schedule, index: int) -> dict[tuple[int, int], tuple[int, float]]:
    """Return layers, and recomputed ones, of every (direction, virtual stage) of a rank."""
    found = {}
    owners = (plan.stages[index], plan.stages[plan.num_stages - 1 - index])
    seen = [0, 0]
    for direction, number in listed.hosted(plan.num_stages)[index]:
        owner = owners[direction]
        size = owner.chunk_sizes[seen[direction]]
        seen[direction] += 1
        found[direction, number] = size, size * owner.num_recomputed / owner.num_layers
    return found


def time_parts(terms: StageTerms, num_layers: int, num_recomputed: Number) -> tuple[tuple[str, Seconds], ...]:
    """Return the time of one micro-batch by part; the parts sum to forward plus backward."""
    found: dict[str, float] = {}
    for factor, parts in ((float(num_layers), terms.parts_layer), (1.0, terms.parts_edge)):
        for name, seconds in parts:
            found[name] = found.get(name, 0.0) + factor * float(seconds)
    found["recompute"] += num_recomputed * float(terms.replay_layer)
    return tuple((name, seconds) for name, seconds in found.items() if seconds > 0.0)
