"""How CP-SAT is run: the same answer on every machine, and interrupts left to the search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

SEED = 1
Linear: TypeAlias = Any
"""A linear expression of the solver, or an integer where nothing is left to choose."""


def weighted(terms: Iterable[tuple[int, Linear]]) -> Linear:
    """Return the sum of coefficient times variable; Python's own sum is refused where coefficients are zero."""
    listed = list(terms)
    return cp_model.LinearExpr.weighted_sum([term[1] for term in listed], [int(term[0]) for term in listed])


def new_solver(effort: float, *, gap: float = 0.0, time_limit: float = 0.0) -> cp_model.CpSolver:
    """Return a solver that stops after `effort`, in its own deterministic measure of work.

    A relative `gap` ends the search early. A `time_limit` [s] does too, and gives up that the same input gives the same
    answer on any machine; zero is none.
    """
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed = 1, SEED
    parameters.relative_gap_limit = gap
    parameters.max_deterministic_time = effort
    # Columns are few and already filtered by reduced cost: long presolve costs several times what it saves.
    parameters.cp_model_probing_level, parameters.symmetry_level, parameters.max_presolve_iterations = 0, 0, 1
    parameters.catch_sigint_signal = False
    if time_limit > 0:
        parameters.max_time_in_seconds = time_limit
    return solver
