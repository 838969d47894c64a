"""Sets of plans that are not excluded yet, from coarse to fine. Each carries a bound that none of its plans beats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates import Family, Table
from planner.program.bounds import Bound
from planner.program.subproblem import Subproblem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FamilySet:
    """All pipelines of a family, bounded without prices; arrays over the numbers of stages."""

    family: Family
    stages: NDArray[np.int64]
    paces: Floats
    """[ns] bounds on the slowest stage."""
    rests: Floats
    """[ns] bounds on the part of the step beside (M - 1) tau."""

    def only(self, kept: NDArray[np.bool_]) -> FamilySet:
        """Return the pipelines with those numbers of stages that are `kept`."""
        return replace(self, stages=self.stages[kept], paces=self.paces[kept], rests=self.rests[kept])

    @property
    def bounds(self) -> Floats:
        """[ns] below which no plan lies, for each number of stages."""
        return (self.family.num_passes - 1) * self.paces + self.rests

    @property
    def bound(self) -> float:
        """[ns] below which no plan of the set lies."""
        return float(self.bounds.min())

    @property
    def hope(self) -> float:
        """[ns] what a step would take if its stages came out balanced: (M + P - 1) tau."""
        return float(((self.family.num_passes + self.stages - 1) * self.paces).min())

    @property
    def replay_bound(self) -> float:
        """[ns] below which no replay lies: M times the slowest stage, or one micro-batch through all stages."""
        return float(np.maximum(self.family.num_passes * self.paces, self.rests).min())


@dataclass(frozen=True)
class PipelineSet:
    """The pipelines of a priced family with one number of stages."""

    table: Table
    num_stages: int
    pace: float
    """[ns] bound on the slowest stage."""
    rest: float
    """[ns] bound on the part of the step beside (M - 1) tau, of plans below the cutoff that was in force."""
    bound: float
    """[ns] below which no plan of the set lies."""
    replay_bound: float
    """[ns] below which no replay of a plan of the set lies."""
    prices: Floats
    """(row,) [ns] about what a device is worth."""

    @property
    def num_passes(self) -> int:
        """M v"""
        return self.table.family.num_passes

    @property
    def hope(self) -> float:
        """[ns] what a step would take if the stages came out balanced: (M + P - 1) tau."""
        return (self.num_passes + self.num_stages - 1) * self.pace


@dataclass(frozen=True)
class BoundedSet:
    """A subproblem with its Lagrangian bound, and later with its smallest bottleneck."""

    sub: Subproblem
    known: Bound
    replay_bound: float
    """[ns] below which no replay of a plan of the set lies."""
    proved: float
    """[ns] below which no plan of the set lies, from other sources than `known`."""
    exact: bool = False
    """Whether the bound holds the exact smallest bottleneck."""
    effort: float = 1.0
    """[-] work that CP-SAT may spend next, in its own deterministic measure."""

    @property
    def bound(self) -> float:
        """[ns] below which no plan of the set lies."""
        return max(self.known.value, self.proved)


OpenSet = FamilySet | PipelineSet | BoundedSet
