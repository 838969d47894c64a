"""What an optimizer keeps and moves for each parameter, where it is not the framework's usual one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRecipe:
    """An optimizer and the precisions of its state. Data: a new one is a row of the catalogue."""

    name: str
    summary: str
    master_bytes: float
    """[bytes] of the master weight, beside the working weight; zero if there is none."""
    state_bytes: float
    """[bytes] of moments and whatever else it keeps per parameter."""
    update_bytes: float
    """[bytes] of memory traffic per parameter of its step."""
    source: str
    gradient_bytes: float | None = None
    """[bytes] of one gradient; None for the framework's."""
