"""The Python module of torchtitan from 0.3 on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.configurations.forms.torchtitan.catalog import MODULE, Flavor, recipes
from planner.export.frameworks.torchtitan import llama_like
from planner.export.frameworks.torchtitan.settings import (
    model_flavor,
    reasons,
    refuse,
    settings,
    shown,
    uneven_sequence,
)
from planner.specs.plan import PlanFile

TARGET = "torchtitan"
HEAD = '"""torchtitan 0.3, as plan_titan.py: torchrun ... -m torchtitan.train --module plan_titan --config plan."""\n'
LAYER = "layers."
CHECKPOINTS = {"full": "FullAC", "selective": "SelectiveAC"}


def module_text(file: PlanFile) -> str:
    """Return the plan as a module with a function ``plan``.

    Raises:
        CannotExpress: with every reason.
    """
    flavor = model_flavor(file, MODULE)
    refuse(TARGET, module_reasons(file))
    told = settings(file, "lm_head")
    if file.plan.num_stages > 1:
        told["training.disable_cuda_graphs"] = True
    told["parallelism.enable_sequence_parallel"] = file.plan.stages[0].strategy.sequence_parallel
    checkpoint = CHECKPOINTS.get(told["activation_checkpoint.mode"])
    imports = [f"from torchtitan.distributed.activation_checkpoint import {checkpoint}\n"] if checkpoint else []
    imports += ["from torchtitan.trainer import Trainer\n"]
    recipe, model, before = _model(file, flavor, imports)
    body = "\n".join(_body(told, recipe, model, checkpoint))
    return f"{HEAD}\n{_sorted(imports)}\n\n{before}def plan() -> Trainer.Config:\n{body}\n"


def _model(file: PlanFile, flavor: Flavor | None, imports: list[str]) -> tuple[str, list[str], str]:
    """Return the recipe to start from, the lines that give it the model, and functions that these need.

    What they import is added to `imports`.
    """
    if flavor is None:
        imports += [llama_like.IMPORTS, _recipe_import("llama3", llama_like.RECIPE)]
        return llama_like.RECIPE, llama_like.call(file.model), f"{llama_like.TEXT}\n\n"
    recipe = _recipe(flavor)
    imports.append(_recipe_import(flavor.model, recipe))
    if recipes()[recipe].flavor == flavor.name:
        return recipe, [], ""
    imports.append(f"from torchtitan.models.{flavor.model} import model_registry\n")
    return recipe, [f"    c.model_spec = model_registry({_value(flavor.name)})"], ""


def _recipe_import(model: str, recipe: str) -> str:
    return f"from torchtitan.models.{model}.config_registry import {recipe}\n"


def _sorted(imports: list[str]) -> str:
    """Return import statements in blocks: the standard library's, and others."""
    lines = [line for line in "".join(imports).splitlines() if line]
    own = [line for line in lines if line.startswith("from functools")]
    others = sorted((line for line in lines if line not in own), key=lambda line: (line.startswith("from"), line))
    return "\n".join([*own, *([""] if own else []), *others, ""])


def _body(told: dict[str, Any], recipe: str, model: list[str], checkpoint: str | None) -> Iterator[str]:
    """Yield the lines of the function."""
    yield '    """Return the configuration of the plan."""'
    yield f"    c = {recipe}()"
    yield from model
    for name in ("training", "parallelism"):
        yield f"    {name[0]} = c.{name}"
        if name == "parallelism" and told["parallelism.context_parallel_degree"] > 1:
            yield (
                "    # the plan sends keys and values round a ring, and torchtitan gathers them: as many bytes, less"
                " hidden"
            )
        for key, value in shown(told, name).items():
            yield f"    {name[0]}.{key} = {_value(value)}"
    yield f"    c.activation_checkpoint = {f'{checkpoint}.Config()' if checkpoint else None}"
    yield f"    c.compile.enable = {told['compile.enable']}"
    yield "    return c"


def _recipe(flavor: Flavor) -> str:
    """Return the configuration to start from: the flavor's own, else another of its model, with the same vocabulary."""
    able = {name: one for name, one in recipes().items() if one.model == flavor.model and not one.converted}
    own = next((name for name, one in able.items() if one.flavor == flavor.name), "")
    return own or next(name for name, one in able.items() if not one.flavor.startswith("debug"))


def module_reasons(file: PlanFile) -> Iterator[str]:
    """Yield why a plan cannot be a module."""
    flavor = model_flavor(file, MODULE)
    yield from reasons(file)
    plan, strategy, sequence = file.plan, file.plan.stages[0].strategy, file.job.sequence
    most = flavor.config["max_position_embeddings"] if flavor else file.model.max_sequence
    if flavor is None:
        yield from llama_like.obstacles(file.model)
    if sequence > most:
        yield f"torchtitan's {file.model.name} reads {most:,} tokens at most, and the plan {sequence:,}"
    if plan.num_stages > 1 and file.model.tied:
        yield "torchtitan cannot cut a model into stages whose head has the embedding's weights; plan with `pp = 1`"
    context = strategy.degree("cp")
    parts = (strategy.degree("tp") if strategy.sequence_parallel else 1) * (2 * context if context > 1 else 1)
    yield from uneven_sequence(file, parts, "tensor degree times twice the context degree")


def _value(value: Any) -> str:
    """Return a value as Python writes it, the modules of stages a line each."""
    if isinstance(value, list):
        return "\n".join(["[", *(f"        {_stage(one)}," for one in value), "    ]"])
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _stage(names: list[str]) -> str:
    """Return the modules of a stage, its layers by their numbers: they follow one another."""
    layers = [name for name in names if name.startswith(LAYER)]
    begin = int(layers[0].removeprefix(LAYER))
    bounds = f"{begin}, {begin + len(layers)}" if begin else f"{len(layers)}"
    listed = f'f"{LAYER}{{i}}" for i in range({bounds})'
    if len(layers) == len(names):
        return f"[{listed}]"
    before, after = names[: names.index(layers[0])], names[names.index(layers[-1]) + 1 :]
    return f"[{', '.join([*map(_value, before), f'*({listed})', *map(_value, after)])}]"
