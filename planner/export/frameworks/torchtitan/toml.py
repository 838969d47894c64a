"""The TOML of torchtitan up to 0.2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.configurations.forms.torchtitan.catalog import TOML, Flavor
from planner.export.frameworks.torchtitan.module import module_reasons
from planner.export.frameworks.torchtitan.settings import (
    model_flavor,
    reasons,
    refuse,
    settings,
    shown,
    uneven_sequence,
)
from planner.specs.plan import PlanFile

TARGET = "torchtitan-0.2"
TABLES = ("training", "parallelism", "activation_checkpoint", "compile")
OR_NEWER = ", or use --to torchtitan for 0.3"
HEAD = "# torchtitan 0.2, as plan_titan.toml: torchrun ... -m torchtitan.train --job.config_file plan_titan.toml\n"


def toml_text(file: PlanFile) -> str:
    """Return the plan as TOML.

    Raises:
        CannotExpress: with every reason.
    """
    flavor = model_flavor(file, TOML)
    refuse(TARGET, _reasons(file, flavor))
    if flavor is None:
        raise AssertionError("a model without a flavor is a reason to refuse")
    told = settings(file, "output")
    if told["parallelism.context_parallel_degree"] > 1:
        told["parallelism.context_parallel_rotate_method"] = "alltoall"
    if told["activation_checkpoint.mode"] == "selective":
        told["activation_checkpoint.selective_ac_option"] = "op"
    tables = {"model": {"name": flavor.model, "flavor": flavor.name}, **{name: shown(told, name) for name in TABLES}}
    return HEAD + "".join(_table(name, values) for name, values in tables.items())


def _reasons(file: PlanFile, flavor: Flavor | None) -> Iterator[str]:
    yield from reasons(file)
    plan, strategy = file.plan, file.plan.stages[0].strategy
    tensor, context = strategy.degree("tp"), strategy.degree("cp")
    # The other version is no remedy where it cannot be told the plan either.
    newer = not any(module_reasons(file))
    if flavor is None:
        written = "; --to torchtitan writes them out for 0.3" if newer else ""
        yield f"torchtitan 0.2 has no model of the sizes of {file.model.name}{written}"
    elif plan.num_stages > 1 and not flavor.pipeline:
        yield f"torchtitan 0.2 cannot cut {flavor.model} into stages; plan with `pp = 1`{OR_NEWER * newer}"
    if tensor > 1 and not strategy.sequence_parallel:
        yield "torchtitan 0.2 cuts the sequence wherever there are tensor ranks, and the plan does not; use sp=1"
    if plan.num_replicas * context == 1 and max(tensor, plan.num_stages) > 1 and file.job.precision != "fp32":
        yield (
            "torchtitan 0.2 computes in fp32 where weights are not sharded and there are tensor or pipeline ranks;"
            f" plan with a dp of 2 or more{OR_NEWER * newer}"
        )
    yield from uneven_sequence(file, 2 * tensor * context, "twice tensor times context degree")


def _table(name: str, values: dict[str, Any]) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in values.items()]
    return "\n".join(["", f"[{name}]", *lines, ""])


def _value(value: Any) -> str:
    """Return a value as TOML writes it: like JSON, but for lists of lists a line each."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "\n".join(["[", *(f"    {json.dumps(one)}," for one in value), "]"])
    return json.dumps(value)
