"""What the search takes sharded weights to cost under breadth-first, against the costs of the same plan."""

from __future__ import annotations

import pytest

import builders
from planner.costs import plan_cost
from planner.costs.stage import backward_time, forward_time, stage_memory
from planner.domain.plan import Plan, Stage, Strategy

LAYERS = 16


@pytest.mark.parametrize("rate", [1e10, 2e8])
def test_the_search_prices_what_is_gathered_as_the_replay_does(rate: float) -> None:
    """Both stages of two chunks of 4 layers: times without rounding, memory by part, with all 16 micro-batches held."""
    asked = builders.planning(
        builders.cluster(builders.group(per_node=4, intra=rate)),
        builders.model(LAYERS),
        builders.job(32, "schedule = breadth-first", "zero = 3", "pp = 2", "vpp = 2", "mbs = 1", "tp = 1"),
        builders.framework(gradients_wait=False),
    )
    (family,) = (one for one in asked.space.families if one.pipelined and one.num_replicas == 2)
    made = Plan(
        stages=tuple(
            Stage(
                group="chips",
                first_layer=first,
                last_layer=first + 3,
                later_chunks=((first + 8, first + 11),),
                strategy=Strategy(),
            )
            for first in (0, 4)
        ),
        schedule="breadth-first",
        num_replicas=2,
        micro_batch=1,
        num_microbatches=16,
        zero_stage=3,
        virtual_stages=2,
    )
    priced = plan_cost(made, asked.cluster, asked.model, asked.job, asked.framework)
    for index, stage in enumerate(priced.stages):
        terms = asked.space.terms(family, "none", index == 0, index == 1)
        at = next(row for row, one in enumerate(family.restriction.choices) if asked.space.choices[one].width == 1)
        times = [float(time[at, 0]) for time in (forward_time(terms, 8), backward_time(terms, 8, 0))]
        assert times == pytest.approx([stage.forward, stage.backward])
        found = {name: float(size[at, 0]) for name, size in stage_memory(terms, 8, 0, 16.0)}
        assert found == pytest.approx({name: size for name, size in stage.memory if name in found})
        assert found["gathered_weights"] > 4 * 4 * 768 * 3072
