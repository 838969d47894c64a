"""From the program's answer to a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.candidates import BASE_POLICIES, Space
from planner.domain.plan import Plan, Stage
from planner.program.search import Found
from planner.program.unlike import UnlikeFound
from planner.schedules import Schedule


def decode(space: Space, found: Found) -> Plan:
    """Return the plan that an assignment stands for."""
    sub, family = found.sub, found.sub.family
    runs = _runs(family.schedule, found.assignment.layers)
    stages = []
    for position, (choice, layers) in enumerate(zip(found.assignment.choices, found.assignment.layers, strict=True)):
        chosen = space.choices[family.restriction.choices[choice]]
        at = (position, choice, layers - 1)
        stages.append(
            Stage(
                group=chosen.group.name,
                first_layer=runs[position][0][0],
                last_layer=runs[position][0][1],
                later_chunks=runs[position][1:],
                strategy=chosen.strategy,
                recompute=BASE_POLICIES[int(sub.positions.policy[at])],
                num_recomputed=int(sub.positions.recomputed[at]),
                split=chosen.split,
            )
        )
    return Plan(
        stages=tuple(stages),
        schedule=family.schedule.name,
        num_replicas=family.num_replicas,
        micro_batch=family.micro_batch,
        num_microbatches=family.num_microbatches,
        zero_stage=family.zero_stage,
        virtual_stages=sub.virtual_stages,
        short_replicas=family.short_replicas,
    )


def _runs(schedule: Schedule, layers: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return first and last layer of each chunk of every position, whose chunks have equally many layers."""
    runs: list[tuple[tuple[int, int], ...]] = [()] * len(layers)
    first = 0
    for stage in range(schedule.virtual_stages * len(layers)):
        position = schedule.placement(stage, len(layers))
        runs[position] += ((first, first + layers[position] - 1),)
        first += layers[position]
    return runs


def decode_unlike(space: Space, found: UnlikeFound) -> Plan:
    """Return the plan that the kinds of pipelines of several groups make up."""
    pipelines = []
    for priced, share in found.parts:
        alone = decode(space, Found(sub=priced.sub, assignment=priced.assignment, objective=priced.passes))
        short = share.most * share.replicas - share.microbatches
        pipelines.append(replace(alone, num_replicas=share.replicas, num_microbatches=share.most, short_replicas=short))
    first, *others = pipelines
    return replace(first, other_pipelines=tuple(others))
