"""Build the integer program of one subproblem and solve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.program.bounds import Bound
from planner.program.constraints import CONSTRAINTS
from planner.program.evaluation import evaluate
from planner.program.solver import Linear, new_solver, run, weighted
from planner.program.subproblem import Assignment, Subproblem
from planner.program.variables import Column, Variables, make_variables


@dataclass(frozen=True)
class Solved:
    """What the solver said of one subproblem."""

    assignment: Assignment | None
    objective: int
    """[ns] of the assignment."""
    bound: float
    """[ns] below which no plan of the subproblem lies, up to the cutoff."""
    complete: bool
    """Whether the solver finished: the assignment is within the gap of the optimum, or nothing beats the cutoff."""


def useful_columns(bound: Bound, cutoff: float) -> list[Column]:
    """Return the columns that a plan below `cutoff` [ns] may take: those whose slack the bound leaves room for."""
    room = cutoff - bound.value
    found = (bound.slack <= room).nonzero()
    return [Column(int(s), int(c), int(n) + 1) for s, c, n in zip(*found, strict=True)]


def build(
    sub: Subproblem,
    columns: Sequence[Column],
    horizon: int,
    constraints: Sequence[Callable[[Variables], None]] = CONSTRAINTS,
) -> Variables:
    """Return the program: min (M v - 1) tau + sum_s t_s + sum_s (x_s + y_s) + (v - 1) Z + S under `constraints`.

    Where a schedule is given by its passes, it is min (M v - 1) tau + R + S.
    """
    variables = make_variables(sub, columns, horizon)
    for constraint in constraints:
        constraint(variables)
    variables.model.minimize(objective(variables))
    return variables


def objective(variables: Variables) -> Linear:
    """Return the step time [ns]."""
    sub = variables.sub
    paces = [(sub.num_passes - 1, lane) for lane in variables.lanes]
    if sub.critical is not None:
        return weighted([*paces, (1, variables.fill), (1, variables.sync)])
    stages = sum(variables.amount(position, "time") for position in range(sub.num_stages))
    hops = sum(variables.hop(position, way) for position in range(sub.num_stages - 1) for way in (0, 1))
    stalls = (sub.virtual_stages - 1, variables.stall)
    return weighted([*paces, (1, variables.sync), stalls]) + stages + hops


def _nothing() -> None:
    """Do nothing while the solver works."""


def solve(
    sub: Subproblem,
    bound: Bound,
    cutoff: float,
    gap: float,
    *,
    effort: float,
    time_limit: float = 0.0,
    tick: Callable[[], None] = _nothing,
) -> Solved:
    """Find the best plan of `sub` below `cutoff` [ns], within `gap` of its optimum.

    `bound.value` must hold for `sub`. The solver stops after `effort` in its deterministic measure, so that the same
    input gives the same plan on any machine; a `time_limit` [s] gives that up.
    Meanwhile `tick` is called again and again.
    """
    columns = useful_columns(bound, cutoff)
    if {column.position for column in columns} != set(range(sub.num_stages)):
        return Solved(assignment=None, objective=0, bound=cutoff, complete=True)
    horizon = int(cutoff) + 1
    variables = build(sub, columns, horizon)
    variables.model.add(objective(variables) <= int(cutoff))
    if sub.num_passes > 1:
        variables.model.add(variables.tau >= int(bound.tau))
    if bound.start is not None:
        for column, taken in variables.taken.items():
            hinted = (bound.start.choices[column.position], bound.start.layers[column.position])
            variables.model.add_hint(taken, (column.choice, column.layers) == hinted)
    solver = new_solver(effort, gap=gap, time_limit=time_limit)
    status = run(solver, variables.model, tick)
    if status == cp_model.MODEL_INVALID:
        message = f"the program is invalid: {variables.model.validate()}"
        raise AssertionError(message)
    if status == cp_model.INFEASIBLE:
        return Solved(assignment=None, objective=0, bound=cutoff, complete=True)
    proved = max(bound.value, solver.best_objective_bound - sub.rounding)
    if status == cp_model.UNKNOWN:
        return Solved(assignment=None, objective=0, bound=min(proved, cutoff), complete=False)
    assignment = variables.assignment(solver)
    return Solved(
        assignment=assignment, objective=evaluate(sub, assignment), bound=proved, complete=status == cp_model.OPTIMAL
    )
