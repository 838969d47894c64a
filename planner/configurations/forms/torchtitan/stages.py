"""How torchtitan cuts a model into stages: by lists of module names, or by itself.

Source: torchtitan/distributed/pipeline_parallel.py at v0.2.2 and v0.3.0, which do the same but for the name of the
head; the schedules are those of torch/distributed/pipelining/schedules.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.configurations.forms.torchtitan.degrees import PIPELINE, is_old, model_of
from planner.domain.configuration import Configuration

SCHEDULE = "parallelism.pipeline_parallel_schedule"
SCHEDULE_CSV = "parallelism.pipeline_parallel_schedule_csv"
PARTS = "parallelism.module_fqns_per_model_part"
PER_STAGE = "parallelism.pipeline_parallel_layers_per_stage"
FIRST_LESS = "parallelism.pipeline_parallel_first_stage_less_layers"
LAST_LESS = "parallelism.pipeline_parallel_last_stage_less_layers"
EMBEDDING, NORM = "tok_embeddings", "norm"

SINGLE = {"1F1B": "1f1b", "GPipe": "gpipe"}
"""Schedules with one stage a rank -> the planner's name."""
LOOPED = {"Interleaved1F1B": "interleaved", "LoopedBFS": "breadth-first", "InterleavedZeroBubble": "interleaved-zb"}
"""Schedules with two or more stages a rank, dealt round."""
FOLDED = {"ZBVZeroBubble": "zbv", "DualPipeV": "dualpipev"}
"""Schedules with exactly two stages a rank, there and back."""
SCHEDULES: Mapping[str, str] = {**SINGLE, **LOOPED, **FOLDED}
"""Every schedule -> the planner's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A model cut into stages, or why it cannot be."""

    parts: tuple[tuple[str, ...], ...] = ()
    """Names of the modules of every stage, in the order of the layers; empty where that is not known."""
    key: str = ""
    """Of the setting that is to blame."""
    trouble: str = ""
    """Why torchtitan refuses."""


def schedule_of(configuration: Configuration) -> str:
    """Return the schedule as it is spelt in the tables above, of whatever case it is written; empty if unknown."""
    written = str(configuration.get(SCHEDULE) or "").lower()
    return next((name for name in SCHEDULES if name.lower() == written), "")


def head_name(configuration: Configuration) -> str:
    """Return what the module of the head is called."""
    return "output" if is_old(configuration) else "lm_head"


def layer_numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers of the layers among module names."""
    return [int(found[1]) for name in names if (found := re.fullmatch(r"layers\.([0-9]{1,4})", name))]


def split(configuration: Configuration) -> Split:
    """Return the stages of a configuration with a pipeline."""
    written = configuration.get(PARTS)
    if isinstance(written, list) and written and all(_is_texts(part) for part in written):
        return Split(parts=tuple(tuple(part) for part in written), key=PARTS)
    model = model_of(configuration)
    if model is None:
        return Split()
    layers, first, last = model.config["num_hidden_layers"], *_less(configuration)
    number = _number(configuration, layers + first + last)
    if first < 0 or last < 0 or number < 1:
        return Split(key=PER_STAGE, trouble="layers are counted from 0 on, and stages hold at least one")
    return generated(number, layers, first, last, head_name(configuration))


def _is_texts(part: object) -> bool:
    return isinstance(part, list) and all(isinstance(name, str) for name in part)


def _less(configuration: Configuration) -> tuple[int, int]:
    return configuration.number(FIRST_LESS, 1), configuration.number(LAST_LESS, 1)


def _number(configuration: Configuration, units: int) -> int:
    """Return how many stages are made of `units` layers, embedding and head counted as layers."""
    pipeline, per_stage = configuration.number(PIPELINE, 1), configuration.get(PER_STAGE)
    if isinstance(per_stage, int) and not isinstance(per_stage, bool):
        return -(-units // per_stage) if per_stage > 0 else 0
    return pipeline * (1 if schedule_of(configuration) in SINGLE else 2)


def generated(number: int, layers: int, first: int, last: int, head: str) -> Split:
    """Return the stages that torchtitan makes by itself.

    Embedding and head count as `first` and `last` layers; what is left over goes to the earliest stages, a layer each.
    """
    if number == 1:
        return Split(parts=((EMBEDDING, *_layers(0, layers), NORM, head),))
    units = layers + first + last
    share, extra = divmod(units, number)
    counted = f"{layers} layers, {first} for the embedding and {last} for the head"
    if share == 0:
        return Split(key=PIPELINE, trouble=f"{number} stages are more than there are layers ({counted})")
    for key, weight, end in ((FIRST_LESS, first, "embedding"), (LAST_LESS, last, "head")):
        if weight > share:
            what = f"the {end} counts as {weight} layers, and the smallest of {number} stages holds {share} ({counted})"
            most = (units - weight) // (number - 1)  # the largest that is not above the share that it leads to
            return Split(key=key, trouble=f"{what}; write {most} or less")
    parts, begin = [], 0
    for stage in range(number):
        held = share + (stage < extra) - (first if stage == 0 else last if stage == number - 1 else 0)
        names = _layers(begin, min(layers, begin + held))
        begin += len(names)
        before, after = (EMBEDDING,) * (stage == 0), (NORM, head) * (stage == number - 1)
        parts.append((*before, *names, *after))
    return Split(parts=tuple(parts))


def _layers(begin: int, end: int) -> tuple[str, ...]:
    return tuple(f"layers.{number}" for number in range(begin, end))
