"""Bytes that a device holds: the only arithmetic of sharding over ranks with the same weights."""

from __future__ import annotations

from dataclasses import dataclass

from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Number
from planner.domain.optimizer import OptimizerRecipe
from planner.parallelism import ZeroStage
from planner.units import Bytes

UPDATE_BYTES = 30
"""[bytes] of memory traffic per parameter of an Adam step with fp32 master weights (read gradient, read and write
two moments and the master weight, write the working weight)."""
FULL_WEIGHT_BYTES = 4
"""[bytes] of a weight in fp32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBytes:
    """[bytes] per parameter that a device holds, and that it sends."""

    weights: float
    gradients: float
    optimizer: float
    sent_weights: float
    sent_gradients: float
    update: float
    """[bytes] of memory traffic of the optimizer step."""
    predict: float
    """[bytes] of memory traffic of predicting the weight of later steps: the optimizer's states are read, and the
    weight itself where they have no master copy of it; what is predicted is written."""
    temporary: float
    """[bytes] while the optimizer makes or updates its states."""


def parameter_bytes(framework: Framework, job: Job, zero: ZeroStage, ranks: int) -> ParameterBytes:
    """Return the bytes per parameter under a ZeRO stage over `ranks` (Rajbhandari et al. 2020, figure 1).

    Megatron's bf16 recipe: 2 + 4 + 12 = 18 replicated, 6 + 12/dp with its distributed optimizer. Training in fp32
    needs no master copy: 4 + 4 + 8. A recipe of the job replaces what is usual with the framework.
    """
    plain, recipe = job.precision == "fp32", job.optimizer
    weight = 4 if plain else framework.weight_bytes
    gradient: float = 4 if plain else framework.gradient_bytes
    optimizer: float = 8 if plain else framework.optimizer_bytes
    update: float = UPDATE_BYTES
    mastered = not plain and (recipe is None or recipe.master_bytes > 0)
    if recipe is not None:
        optimizer = recipe.state_bytes + (0 if plain else _master_bytes(recipe, framework))
        update = recipe.update_bytes
        if recipe.gradient_bytes is not None and not plain:
            gradient = recipe.gradient_bytes
    return ParameterBytes(
        weights=weight / (ranks if zero.weights else 1),
        gradients=gradient / (ranks if zero.gradients else 1),
        optimizer=optimizer / (ranks if zero.optimizer else 1),
        sent_weights=weight,
        sent_gradients=gradient,
        update=update / (ranks if zero.optimizer else 1),
        predict=(optimizer + weight * (1 if mastered else 2)) / (ranks if zero.optimizer else 1),
        temporary=framework.update_temporary_bytes / (ranks if zero.optimizer else 1),
    )


def _master_bytes(recipe: OptimizerRecipe, framework: Framework) -> float:
    """Return the bytes of the master weight beside the working weight, which may be the fp32 one's upper half."""
    if framework.weights_in_master:
        return min(recipe.master_bytes, FULL_WEIGHT_BYTES - framework.weight_bytes)
    return recipe.master_bytes


def gathered_bytes(framework: Framework, job: Job, parameters: Number) -> Bytes:
    """Return the bytes of a unit of `parameters` that is gathered while the next one is prefetched.

    Two units of weights, and one of gradients before they are scattered (PyTorch FSDP2).
    """
    whole = parameter_bytes(framework, job, ZERO_WHOLE, 1)
    return parameters * (2 * whole.sent_weights + whole.sent_gradients)


ZERO_WHOLE = ZeroStage(stage=0, optimizer=False, gradients=False, weights=False, summary="")
