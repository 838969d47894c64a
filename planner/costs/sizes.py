"""Bytes that a device holds: the only arithmetic of sharding over ranks with the same weights."""

from __future__ import annotations

from dataclasses import dataclass

from planner.domain.framework import Framework
from planner.domain.model import Number
from planner.parallelism import ZeroStage
from planner.units import Bytes

UPDATE_BYTES = 30
"""[bytes] of memory traffic per parameter of an Adam step with fp32 master weights (read gradient, read and write
two moments and the master weight, write the working weight)."""


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


def parameter_bytes(framework: Framework, precision: str, zero: ZeroStage, ranks: int) -> ParameterBytes:
    """Return the bytes per parameter under a ZeRO stage over `ranks` (Rajbhandari et al. 2020, figure 1).

    Megatron's bf16 recipe: 2 + 4 + 12 = 18 replicated, 6 + 12/dp with its distributed optimizer. Training in fp32
    needs no master copy: 4 + 4 + 8.
    """
    plain = precision == "fp32"
    weight = 4 if plain else framework.weight_bytes
    gradient = 4 if plain else framework.gradient_bytes
    optimizer = 8 if plain else framework.optimizer_bytes
    return ParameterBytes(
        weights=weight / (ranks if zero.weights else 1),
        gradients=gradient / (ranks if zero.gradients else 1),
        optimizer=optimizer / (ranks if zero.optimizer else 1),
        sent_weights=weight,
        sent_gradients=gradient,
        update=UPDATE_BYTES / (ranks if zero.optimizer else 1),
    )


def gathered_bytes(framework: Framework, precision: str, parameters: Number) -> Bytes:
    """Return the bytes of a unit of `parameters` that is gathered while the next one is prefetched.

    Two units of weights, and one of gradients before they are scattered (PyTorch FSDP2).
    """
    whole = parameter_bytes(framework, precision, ZERO_WHOLE, 1)
    return parameters * (2 * whole.sent_weights + whole.sent_gradients)


ZERO_WHOLE = ZeroStage(stage=0, optimizer=False, gradients=False, weights=False, summary="")
