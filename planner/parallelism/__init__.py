"""The axes over which one replica of a stage is spread, one file each, and the stages of ZeRO across replicas."""

from planner.parallelism.base import Axis, Collective, blockers, refined, weight_copies
from planner.parallelism.context import CONTEXT
from planner.parallelism.data import ZERO_STAGES, ZeroStage
from planner.parallelism.tensor import TENSOR

AXES: tuple[Axis, ...] = (TENSOR, CONTEXT)
"""Innermost first: ranks of the first axis sit closest together."""

__all__ = [
    "AXES",
    "CONTEXT",
    "TENSOR",
    "ZERO_STAGES",
    "Axis",
    "Collective",
    "ZeroStage",
    "blockers",
    "refined",
    "weight_copies",
]
