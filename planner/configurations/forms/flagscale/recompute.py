"""Recompute of each stage and micro-batch (FS6)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.flagscale.batch import micro_batches
from planner.configurations.forms.flagscale.meshes import ARGUMENTS
from planner.domain.configuration import WARNING, Configuration

GRANULARITY = "recompute_granularity_per_stage_micro_batch"
METHOD = "recompute_method_per_stage_micro_batch"
COUNT = "recompute_num_layers_per_stage_micro_batch"
LISTS = (GRANULARITY, METHOD, COUNT)
MOST = 10_000_000
"""Values of a list, written out; more would be a mistake."""
BLOCK_SOURCE = (
    "FlagScale, flagscale/backends/Megatron-LM/megatron/core/transformer/transformer_block.py.patch at da4935e"
)


def stages(configuration: Configuration, key: str) -> list[list[int]]:
    """Return the values of a list as (stage, micro-batch); none where it is not written, or broken."""
    found = configuration.get(key)
    if not isinstance(found, list) or not all(map(_good, found)):
        return []
    if sum(entry[0] * sum(entry[1::2]) for entry in found) > MOST:
        return []
    rows = []
    for entry in found:
        values = [value for number, value in _pairs(entry) for _ in range(number)]
        rows += [values] * entry[0]
    return rows


def _pairs(entry: list[int]) -> Iterator[tuple[int, int]]:
    yield from zip(entry[1::2], entry[2::2], strict=False)


def _good(entry: Any) -> bool:
    whole = isinstance(entry, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in entry)
    return whole and len(entry) >= 3 and len(entry) % 2 == 1 and min(entry) >= 0 and max(entry) < 100_000


def _form(configuration: Configuration) -> Iterator[Complaint]:
    for key in LISTS:
        if key in configuration and not stages(configuration, key):
            form = "[stages, micro-batches, value, micro-batches, value, ...]"
            yield key, f"should be a list of entries {form}, such as [[1, 30, 0, 2, 1], [2, 32, 1]]"


def _sizes(configuration: Configuration) -> Iterator[Complaint]:
    pp, number = configuration.number("pipeline_model_parallel_size"), micro_batches(configuration)
    for key in LISTS:
        rows = stages(configuration, key)
        if rows and len(rows) != pp:
            yield key, f"speaks of {len(rows)} stages, and there are {pp}; its first numbers should add up to {pp}"
        wrong = next((len(row) for row in rows if number and len(row) != number), None)
        if wrong is not None:
            yield key, f"speaks of {wrong} micro-batches, and a step has {number}; make each entry add up to {number}"


def _flags(configuration: Configuration) -> Iterator[Complaint]:
    for key, meaning in ((GRANULARITY, "0 (none) or 1 (full)"), (METHOD, "0 (uniform) or 1 (block)")):
        odd = {value for row in stages(configuration, key) for value in row} - {0, 1}
        if odd:
            yield key, f"has the value {min(odd)}; it is {meaning} for each stage"


def _full(configuration: Configuration) -> Iterator[Complaint]:
    if GRANULARITY not in configuration:
        return
    if configuration.get("recompute_granularity") != "full":
        yield GRANULARITY, "needs recompute_granularity: full beside it"
    if configuration.get("recompute_method") is None:
        yield GRANULARITY, "needs recompute_method: block or uniform beside it"


def _steady(configuration: Configuration) -> Iterator[Complaint]:
    for index, row in enumerate(stages(configuration, GRANULARITY)):
        if any(before == 0 and after == 1 for before, after in pairwise([*row, *row])):
            message = f"switches recompute of stage {index} off and on again within a step"
            yield GRANULARITY, f"{message}, and it stays off from the first 0 on; write 0 or 1 for the whole stage"


RULES = (
    Rule(
        code="FS601",
        name="Lists of recompute are entries of pairs",
        summary="[stages, micro-batches, value, ...], an odd number of whole numbers in each entry",
        why="Each entry speaks of a run of stages, and within it of runs of micro-batches.",
        source=ARGUMENTS,
        check=_form,
    ),
    Rule(
        code="FS602",
        name="Lists of recompute speak of every stage and micro-batch",
        summary="stages add up to pp, micro-batches to global_batch_size / (micro_batch_size dp of the first mesh)",
        why="FlagScale looks values up by stage and micro-batch.",
        source=ARGUMENTS,
        check=_sizes,
    ),
    Rule(
        code="FS603",
        name="Switches of recompute are 0 or 1",
        summary="granularity 0 none, 1 full; method 0 uniform, 1 block",
        why="Other values are refused.",
        source=ARGUMENTS,
        check=_flags,
    ),
    Rule(
        code="FS604",
        name="Recompute by stage is of the full kind",
        summary="recompute_granularity: full and a recompute_method beside the lists",
        why="The lists switch full recompute off again where they say 0; they cannot switch it on.",
        source=ARGUMENTS,
        check=_full,
    ),
    Rule(
        code="FS605",
        name="Recompute of a stage does not change",
        summary="the granularity of a stage is 0 or 1 for all its micro-batches",
        why="A 0 sets the granularity of the running configuration to None, and nothing sets it again: from the first 0"
        " on nothing of that stage is recomputed, and it may run out of memory.",
        source=BLOCK_SOURCE,
        check=_steady,
        severity=WARNING,
        caught=False,
    ),
)
"""In the order of their codes."""
