"""TT205 and TT206: lists of modules are whole, and every stage has layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import model_of
from planner.configurations.forms.torchtitan.rules.stages import SPLIT, pipeline_degree
from planner.configurations.forms.torchtitan.stages import (
    EMBEDDING,
    NORM,
    PARTS,
    PER_STAGE,
    head_name,
    layer_numbers,
    split,
)
from planner.domain.configuration import WARNING, Configuration

SHOWN = 4
"""Names that a message lists."""


def _wrong_names(configuration: Configuration) -> Iterator[Complaint]:
    cut = split(configuration)
    if pipeline_degree(configuration) == 1 or cut.key != PARTS or not cut.parts:
        return
    names = [name for part in cut.parts for name in part]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        yield PARTS, f"{_listed(twice)} would be in several stages; keep each in one"
    yield from _strangers(configuration, names)
    numbers = layer_numbers(names)
    if numbers != sorted(numbers) and not twice:
        yield PARTS, "layers are out of order: each stage feeds the next, so write them from layers.0 upwards"
    head = head_name(configuration)
    ends = ((EMBEDDING, cut.parts[0], "first"), (NORM, cut.parts[-1], "last"), (head, cut.parts[-1], "last"))
    for name, part, where in ends:
        if name in names and name not in part:
            yield PARTS, f"{name} is not in the {where} stage, where its input is; move it there"


def _strangers(configuration: Configuration, names: list[str]) -> Iterator[Complaint]:
    """Yield what is named and does not exist, and what exists and is not named."""
    head, model = head_name(configuration), model_of(configuration)
    numbers = layer_numbers(names)
    layers = model.config["num_hidden_layers"] if model else max(numbers, default=-1) + 1
    known = [EMBEDDING, *(f"layers.{number}" for number in range(layers)), NORM, head]
    present = set(names)
    unknown = [name for name in names if name not in set(known) and name != "vision_encoder"]
    other = {"output": "lm_head", "lm_head": "output"}[head]
    if other in unknown:
        what = "up to 0.2, and lm_head since" if head == "output" else "from 0.3 on, and was output before"
        yield PARTS, f"{other} is no module of this version: the head is called {head} {what}; write {head}"
    missing = [name for name in known if name not in present and not (name == head and other in present)]
    if missing:
        count = f" of {model.model} {model.name}" if model else ""
        yield PARTS, f"{_listed(missing)}{count} would be in no stage, and would not be trained; add what is missing"
    if strange := [name for name in unknown if name != other]:
        yield (
            PARTS,
            f"{_listed(strange)} would be silently left out: there is no such module; write {known[0]}, layers.0, ...",
        )


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= SHOWN + 1 else [*names[:SHOWN], f"{len(names) - SHOWN} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _empty_stage(configuration: Configuration) -> Iterator[Complaint]:
    cut = split(configuration)
    if pipeline_degree(configuration) == 1:
        return
    for number, part in enumerate(cut.parts):
        if not layer_numbers(part):
            held = " and ".join(part) or "nothing"
            yield (
                cut.key or PER_STAGE,
                f"stage {number} holds {held} and no layer, so that others wait for it or it for them",
            )


RULES = (
    Rule(
        code="TT205",
        name="Lists of modules are complete, unique and in order",
        summary="tok_embeddings, layers.0 ... layers.N-1, norm, and the head (lm_head; up to 0.2 output), each once",
        why=(
            "torchtitan keeps in a stage what is listed and drops the rest, without a look at whether all is there:"
            " a forgotten layer is left out of the model, and the loss still falls. The head is called output up to"
            " 0.2 and lm_head since, so that a list for the other version leaves the head out."
        ),
        source=SPLIT,
        check=_wrong_names,
        caught=False,
    ),
    Rule(
        code="TT206",
        name="No stage is without layers",
        summary="every stage holds one layer or more",
        why="A stage of the embedding or the head alone does run. It is nearly idle, and the others carry its layers.",
        source="github.com/pytorch/torchtitan/pull/2113: balanced stages are up to 29 % faster",
        check=_empty_stage,
        severity=WARNING,
        caught=False,
    ),
)
