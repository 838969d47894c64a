"""How many layers of each chunk Megatron-Core recomputes in full, which is all that it can be told of a stage."""

from __future__ import annotations

from planner.domain.plan import Plan, Stage


def block_layers(plan: Plan) -> int | None:
    """Return how many layers of each chunk are recomputed in full: None if none or all are, 0 if no number says it."""
    if all(stage.num_recomputed in {0, stage.num_layers} for stage in plan.stages):
        return None
    most = max(size for stage in plan.stages for size in stage.chunk_sizes)
    return next((number for number in range(1, most + 1) if all(_comes_to(stage, number) for stage in plan.stages)), 0)


def _comes_to(stage: Stage, number: int) -> bool:
    return sum(min(number, size) for size in stage.chunk_sizes) == stage.num_recomputed
