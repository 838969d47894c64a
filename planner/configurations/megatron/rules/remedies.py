"""Ways to cut layers that do not divide evenly, as they would be typed."""

from __future__ import annotations

from planner.configurations.megatron.facts import MOST_STAGES, Facts


def uneven_remedy(facts: Facts, fewer_last: int = 1) -> str:
    """Return what to write so that the layers come out: fewer in the last stage, else a layout.

    Args:
        facts: with layers and at least two stages.
        fewer_last: layers that the last stage should have less than the others.
    """
    sizes = with_smaller_last(facts.layers, facts.pp, fewer_last)
    if sizes is None:
        return f"give each of the {facts.pp} stages its layers by --pipeline-model-parallel-layout"
    if len(set(sizes[:-1])) == 1 and sizes[-1] != sizes[0]:
        return f"write --decoder-last-pipeline-num-layers {sizes[-1]} ({_listed(sizes)}) or a layout string"
    layout = "E" + "|".join(f"t*{size}" if size > 1 else "t" for size in sizes) + "L"
    return f"write --pipeline-model-parallel-layout '{layout}' ({_listed(sizes)})"


def with_smaller_last(layers: int, stages: int, fewer: int) -> tuple[int, ...] | None:
    """Return layers of each stage: the same for all but the last if the last has `fewer` less or near it."""
    if stages < 2 or layers < stages or stages > MOST_STAGES:
        return None
    usual = -(-layers // stages)
    for size in (usual, usual + 1):
        last = layers - size * (stages - 1)
        if 0 < last < size and size - last <= max(2, 2 * fewer, size // 2):
            return (*((size,) * (stages - 1)), last)
    base, more = divmod(layers, stages)
    return tuple(base + (stage < more) for stage in range(stages))


def _listed(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes)) if len(sizes) <= 8 else f"{sizes[0]},{sizes[1]},...,{sizes[-1]}"
