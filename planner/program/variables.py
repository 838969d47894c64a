"""The variables of the integer program, asked for by meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.program.solver import Linear, weighted
from planner.program.subproblem import Assignment, Subproblem


@dataclass(frozen=True, order=True)
class Column:
    """Position s takes choice c with n layers."""

    position: int
    choice: int
    layers: int


@dataclass(frozen=True)
class Variables:
    """Variables over the columns that may be in a plan of interest."""

    model: cp_model.CpModel
    sub: Subproblem
    pace: int
    """[ns] above which no tau of interest lies."""
    taken: dict[Column, cp_model.IntVar]
    """0/1: the column is in the plan."""
    lanes: tuple[cp_model.IntVar, ...]
    """[ns] the pace of each lane of the schedule."""
    sync: cp_model.IntVar
    """[ns] by which the last gradient exchange outlasts the last backward pass of stage 0."""
    stall: cp_model.IntVar
    """[ns] by which the way round all stages outlasts a round of passes; zero where stages are one chunk."""
    fill: cp_model.IntVar
    """[ns] what the longest critical path holds beside the passes of the slowest stage; zero without such paths."""
    joints: dict[tuple[int, int, int], cp_model.IntVar]
    """0/1 by (position, choice, next position's choice), where transfers differ."""
    by_position: dict[int, list[Column]] = field(default_factory=dict)

    @property
    def tau(self) -> Linear:
        """[ns] the bottleneck."""
        return sum(self.lanes)

    @property
    def senders(self) -> range:
        """The positions that hand micro-batches on; the last one does where the pipeline turns."""
        return senders(self.sub)

    def following(self, position: int) -> int:
        """Return the position to which a sender hands on."""
        return (position + 1) % self.sub.num_stages

    def uneven(self, position: int, end: int) -> Linear:
        """Return [ns] what makes one chunk of the first (`end` 0) or last (1) position longer than the mean."""
        extra = self.sub.positions.uneven[end]
        return weighted((extra[column.choice], self.taken[column]) for column in self.columns(position))

    def columns(self, position: int) -> list[Column]:
        """Return the columns of a position."""
        return self.by_position[position]

    def chosen(self, position: int, choice: int) -> Linear:
        """Return 1 if the position takes the choice, whatever its layers."""
        return sum(self.taken[column] for column in self.columns(position) if column.choice == choice)

    def choices(self, position: int) -> list[int]:
        """Return the choices that the position has."""
        return sorted({column.choice for column in self.columns(position)})

    def amount(self, position: int, name: str) -> Linear:
        """Return a priced quantity [ns] of the position: ``forward``, ``weight``, ``time``, ``sync`` and others."""
        return self.sum(position, getattr(self.sub.positions, name))

    def sum(self, position: int, array: NDArray[np.int64]) -> Linear:
        """Return what `array`, (position, choice, n - 1), says of the position."""
        return weighted(
            (array[position, column.choice, column.layers - 1], self.taken[column]) for column in self.columns(position)
        )

    def hop(self, position: int, direction: int) -> Linear:
        """Return the transfer time [ns] between a position and the next: direction 0 forward, 1 backward."""
        return self.across(position, self.sub.hops[direction])

    def across(self, position: int, table: NDArray[np.int64]) -> Linear:
        """Return what `table`, (choice, choice), says of a position and the next."""
        following = self.choices(self.following(position))
        pairs = [(here, there) for here in self.choices(position) for there in following]
        if (position, *pairs[0]) not in self.joints:
            return int(table[pairs[0]])
        return weighted((table[pair], self.joints[(position, *pair)]) for pair in pairs)

    def sends(self, position: int) -> dict[str, Linear]:
        """Return the time [ns] that a position waits for what it sends, ``forward`` and ``backward``."""
        last = self.sub.num_stages - 1
        return {
            "forward": self.hop(position, 0) if self.sub.blocking and position < last else 0,
            "backward": self.hop(position - 1, 1) if self.sub.blocking and position else 0,
        }

    def turn(self) -> Linear:
        """Return the time [ns] of a pass of every position each way with all transfers, that from last to first too."""
        stages = sum(self.amount(position, "time") for position in range(self.sub.num_stages))
        return stages + sum(self.hop(position, way) for position in self.senders for way in (0, 1))

    def assignment(self, solver: cp_model.CpSolver) -> Assignment:
        """Read the plan that the solver found."""
        found = sorted(column for column, variable in self.taken.items() if solver.boolean_value(variable))
        return Assignment(tuple(c.choice for c in found), tuple(c.layers for c in found))


def senders(sub: Subproblem) -> range:
    """Return the positions that hand micro-batches on."""
    return range(sub.num_stages if sub.turns else sub.num_stages - 1)


def make_variables(sub: Subproblem, columns: Sequence[Column], horizon: int) -> Variables:
    """Return variables for `columns`; times stay within `horizon` [ns]."""
    model = cp_model.CpModel()
    by_position: dict[int, list[Column]] = defaultdict(list)
    for column in sorted(columns):
        by_position[column.position].append(column)
    taken = {column: model.new_bool_var("") for position in by_position for column in by_position[position]}
    # (M v - 1) tau stays within the horizon, and the product within the solver's integers.
    pace = horizon // max(1, sub.num_passes - 1) + 1
    lanes = tuple(model.new_int_var(0, pace, "") for _ in sub.family.schedule.lanes)
    joints = {}
    for position in senders(sub):
        here = {column.choice for column in by_position[position]}
        there = {column.choice for column in by_position[(position + 1) % sub.num_stages]}
        pairs = [(a, b) for a in sorted(here) for b in sorted(there)]
        if len({(int(sub.hops[0][pair]), int(sub.hops[1][pair])) for pair in pairs}) > 1:
            joints.update({(position, *pair): model.new_bool_var("") for pair in pairs})
    return Variables(
        model=model,
        sub=sub,
        pace=pace * len(lanes),
        taken=taken,
        lanes=lanes,
        sync=model.new_int_var(0, horizon, ""),
        stall=model.new_int_var(0, horizon if sub.virtual_stages > 1 and sub.critical is None else 0, ""),
        fill=model.new_int_var(0, horizon, "") if sub.critical else model.new_constant(0),
        joints=joints,
        by_position=dict(by_position),
    )
