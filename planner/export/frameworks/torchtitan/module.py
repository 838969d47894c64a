"""The Python module of torchtitan from 0.3 on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.configurations.forms.torchtitan.catalog import MODULE, Flavor, recipes
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
CHECKPOINTS = {"full": "FullAC", "selective": "SelectiveAC"}


def module_text(file: PlanFile) -> str:
    """Return the plan as a module with a function ``plan``.

    Raises:
        CannotExpress: with every reason.
    """
    flavor = model_flavor(file, MODULE)
    refuse(TARGET, _reasons(file, flavor))
    if flavor is None:
        raise AssertionError("a model without a flavor is a reason to refuse")
    told = settings(file, "lm_head")
    if file.plan.num_stages > 1:
        told["training.disable_cuda_graphs"] = True
    told["parallelism.enable_sequence_parallel"] = file.plan.stages[0].strategy.sequence_parallel
    recipe = _recipe(flavor)
    named = recipes()[recipe].flavor == flavor.name
    imports = [
        *_checkpoint_import(told["activation_checkpoint.mode"]),
        *([] if named else [f"from torchtitan.models.{flavor.model} import model_registry"]),
        f"from torchtitan.models.{flavor.model}.config_registry import {recipe}",
        "from torchtitan.trainer import Trainer",
    ]
    model = [] if named else [f"    c.model_spec = model_registry({_value(flavor.name)})"]
    return "\n".join([HEAD, *imports, "", "", "def plan() -> Trainer.Config:", *_body(told, recipe, model), ""])


HEAD = '"""torchtitan 0.3: torchrun ... -m torchtitan.train --module plan_titan --config plan."""\n'


def _body(told: dict[str, Any], recipe: str, model: list[str]) -> Iterator[str]:
    """Yield the lines of the function."""
    yield '    """Return the configuration of the plan."""'
    yield f"    c = {recipe}()"
    yield from model
    for name in ("training", "parallelism"):
        yield f"    {name[0]} = c.{name}"
        for key, value in shown(told, name).items():
            yield f"    {name[0]}.{key} = {_value(value)}"
    mode = told["activation_checkpoint.mode"]
    yield f"    c.activation_checkpoint = {f'{CHECKPOINTS[mode]}.Config()' if mode in CHECKPOINTS else None}"
    yield "    c.compile.enable = True"
    yield "    return c"


def _checkpoint_import(mode: str) -> list[str]:
    name = CHECKPOINTS.get(mode)
    return [f"from torchtitan.distributed.activation_checkpoint import {name}"] if name else []


def _recipe(flavor: Flavor) -> str:
    """Return the configuration to start from: the flavor's own, else another of its model, with the same vocabulary."""
    able = {name: one for name, one in recipes().items() if one.model == flavor.model and not one.converted}
    own = next((name for name, one in able.items() if one.flavor == flavor.name), "")
    return own or next(name for name, one in able.items() if not one.flavor.startswith("debug"))


def _reasons(file: PlanFile, flavor: Flavor | None) -> Iterator[str]:
    yield from reasons(file)
    plan, strategy, sequence = file.plan, file.plan.stages[0].strategy, file.job.sequence
    if flavor is None:
        yield f"torchtitan has no model of the sizes of {file.model.name}"
    elif sequence > flavor.config["max_position_embeddings"]:
        most = flavor.config["max_position_embeddings"]
        yield f"torchtitan's {flavor.model} {flavor.name} reads {most:,} tokens at most, and the plan {sequence:,}"
    if plan.num_stages > 1 and file.model.tied:
        yield "torchtitan cannot cut a model into stages whose head has the embedding's weights; plan with `pp = 1`"
    context = strategy.degree("cp")
    parts = (strategy.degree("tp") if strategy.sequence_parallel else 1) * (2 * context if context > 1 else 1)
    yield from uneven_sequence(file, parts, "tensor degree times twice the context degree")


def _value(value: Any) -> str:
    """Return a value as Python writes it, lists of lists a line each."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "\n".join(["[", *(f"        {_value(one)}," for one in value), "    ]"])
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
