"""From the program's answer to a plan."""

from __future__ import annotations

from dataclasses import replace

from planner.candidates import BASE_POLICIES, Space
from planner.domain.plan import Plan, Stage
from planner.program.search import Found
from planner.program.unlike import UnlikeFound


def decode(space: Space, found: Found) -> Plan:
    """Return the plan that an assignment stands for."""
    sub, family = found.sub, found.sub.family
    chunks = sub.virtual_stages
    stages, first = [], 0
    for position, (choice, layers) in enumerate(zip(found.assignment.choices, found.assignment.layers, strict=True)):
        chosen = space.choices[family.restriction.choices[choice]]
        at = (position, choice, layers - 1)
        stages.append(
            Stage(
                group=chosen.group.name,
                first_layer=first,
                last_layer=first + layers - 1,
                later_chunks=tuple(
                    (start, start + layers - 1)
                    for start in range(first + sub.num_layers, chunks * sub.num_layers, sub.num_layers)
                ),
                strategy=chosen.strategy,
                recompute=BASE_POLICIES[int(sub.positions.policy[at])],
                num_recomputed=int(sub.positions.recomputed[at]),
                split=chosen.split,
            )
        )
        first += layers
    return Plan(
        stages=tuple(stages),
        schedule=family.schedule.name,
        num_replicas=family.num_replicas,
        micro_batch=family.micro_batch,
        num_microbatches=family.num_microbatches,
        zero_stage=family.zero_stage,
        virtual_stages=chunks,
        short_replicas=family.short_replicas,
    )


def decode_unlike(space: Space, found: UnlikeFound) -> Plan:
    """Return the plan that the kinds of pipelines of several groups make up."""
    pipelines = []
    for priced, share in found.parts:
        alone = decode(space, Found(sub=priced.sub, assignment=priced.assignment, objective=priced.objective))
        short = share.most * share.replicas - share.microbatches
        pipelines.append(replace(alone, num_replicas=share.replicas, num_microbatches=share.most, short_replicas=short))
    first, *others = pipelines
    return replace(first, other_pipelines=tuple(others))
