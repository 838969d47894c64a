"""How frameworks cut a chain of layers into stages by themselves."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from planner.domain.framework import Framework
from planner.domain.model import Model


def equal_split(num_layers: int, num_stages: int) -> tuple[int, ...]:
    """Return as many layers for each stage, earlier stages taking what is left over (Megatron)."""
    base, left = divmod(num_layers, num_stages)
    return tuple(base + (stage < left) for stage in range(num_stages))


def balanced_split(num_layers: int, num_stages: int, first: float, last: float) -> tuple[int, ...]:
    """Return the split with the smallest largest stage, the ends weighing `first` and `last` layers more.

    DeepSpeed's ``partition_balanced``: the bound is the smallest that holds all, and layers spread evenly below it.
    """
    limit = _smallest_limit(num_layers, num_stages, first, last)
    rooms = [_room(limit, stage, num_stages, first, last) for stage in range(num_stages)]
    counts = [1] * num_stages
    for _ in range(num_layers - num_stages):
        free = [stage for stage in range(num_stages) if counts[stage] < rooms[stage]]
        weights = {stage: counts[stage] + _edge(stage, num_stages, first, last) for stage in free}
        counts[min(free, key=lambda stage: (weights[stage], stage))] += 1
    return tuple(counts)


def cumulative_split(num_layers: int, num_stages: int, first: float, last: float) -> tuple[int, ...]:
    """Return the split at equal shares of the running total, the ends weighing `first` and `last` layers more.

    nanotron assigns each block to the rank in whose share its cost is completed; every stage keeps a layer here.
    """
    totals = list(accumulate([first + 1, *([1.0] * (num_layers - 1))]))
    share = (totals[-1] + last) / num_stages
    ends = [bisect_right(totals, share * (stage + 1) + 1e-9) for stage in range(num_stages - 1)]
    counts, begin = [], 0
    for stage, end in enumerate([*ends, num_layers]):
        held = min(max(end, begin + 1), num_layers - (num_stages - 1 - stage))
        counts.append(held - begin)
        begin = held
    return tuple(counts)


def _edge(stage: int, num_stages: int, first: float, last: float) -> float:
    return first * (stage == 0) + last * (stage == num_stages - 1)


def _room(limit: float, stage: int, num_stages: int, first: float, last: float) -> int:
    return max(1, int(limit - _edge(stage, num_stages, first, last) + 1e-9))


def _smallest_limit(num_layers: int, num_stages: int, first: float, last: float) -> float:
    edges = {0.0, first, last} if num_stages > 1 else {first + last}
    for limit in sorted(count + edge for count in range(1, num_layers + 1) for edge in edges):
        if sum(_room(limit, stage, num_stages, first, last) for stage in range(num_stages)) >= num_layers:
            return limit
    raise AssertionError("one stage alone holds every layer")


def stage_layers(framework: Framework, model: Model, num_stages: int) -> tuple[int, ...]:
    """Return the layers of each stage where `framework` cuts `model` by itself, its ends weighing as its habit says."""
    weight = model.embedding.parameters / model.body.parameters  # the head's projection is as large
    first, last = (weight * (end in framework.split_counts) for end in ("embedding", "head"))
    if framework.stage_split == "balanced":
        return balanced_split(model.num_layers, num_stages, first, last)
    if framework.stage_split == "cumulative":
        return cumulative_split(model.num_layers, num_stages, first, last)
    return equal_split(model.num_layers, num_stages)
