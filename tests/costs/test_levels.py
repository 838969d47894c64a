"""What the memory of a stage rises and falls by, and what of its exchange is the optimizer's step."""

from __future__ import annotations

import pytest

from builders import cluster, framework, group, job, model
from planner.costs import plan_cost
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import FORWARD_BACKWARD


def plan(microbatches: int, *, recomputed: int = 0, schedule: str = "gpipe", replicas: int = 1) -> Plan:
    """Return two stages of two layers each."""
    return Plan(
        stages=tuple(
            Stage(
                group="chips",
                first_layer=first,
                last_layer=first + 1,
                strategy=Strategy(),
                num_recomputed=recomputed,
            )
            for first in (0, 2)
        ),
        schedule=schedule,
        num_replicas=replicas,
        micro_batch=1,
        num_microbatches=microbatches,
        zero_stage=0,
    )


@pytest.mark.parametrize("recomputed", [0, 1, 2])
@pytest.mark.parametrize("microbatches", [1, 5])
def test_levels_add_up_to_the_peak(microbatches: int, recomputed: int) -> None:
    """GPipe holds all micro-batches: what stays, what works, and so many times what one holds."""
    costs = plan_cost(
        plan(microbatches, recomputed=recomputed), cluster(), model(), job(), framework(fragmentation=1.3)
    )
    for stage in costs.stages:
        levels = stage.levels
        assert min(levels.resident, levels.working, levels.held) > 0
        peak = levels.resident + levels.working + microbatches * levels.held
        assert peak == pytest.approx(dict(stage.peaks)[FORWARD_BACKWARD], rel=1e-12)


def test_what_stays_is_weights_gradients_and_states() -> None:
    """They are the same whatever is in flight, and include what lies outside the allocator."""
    few, many = (
        plan_cost(plan(number), cluster(), model(), job(), framework(outside_allocator=7e6)) for number in (1, 9)
    )
    for first, second in zip(few.stages, many.stages, strict=True):
        assert first.levels == second.levels
        stays = sum(dict(first.memory)[part] for part in ("weights", "gradients", "optimizer"))
        assert first.levels.resident == pytest.approx(stays + 7e6)


def test_the_update_is_what_is_left_without_an_exchange() -> None:
    """A single replica with untied weights exchanges nothing: all of `sync` is the update; replicas add to it."""
    where = cluster(group(nodes=2, per_node=2))
    alone, together = (plan_cost(plan(4, replicas=replicas), where, model(), job(), framework()) for replicas in (1, 2))
    for one, two in zip(alone.stages, together.stages, strict=True):
        assert one.update == pytest.approx(one.sync)
        assert two.update == pytest.approx(one.update)
        assert two.sync > two.update > 0
