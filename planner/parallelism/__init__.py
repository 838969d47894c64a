"""The axes over which one replica of a stage is spread, one file each, and the stages of ZeRO across replicas."""

from planner.parallelism.base import Axis, Collective
from planner.parallelism.data import ZERO_STAGES, ZeroStage
from planner.parallelism.tensor import TENSOR

AXES: tuple[Axis, ...] = (TENSOR,)
"""Innermost first: ranks of the first axis sit closest together."""

__all__ = ["AXES", "TENSOR", "ZERO_STAGES", "Axis", "Collective", "ZeroStage"]
