"""How CP-SAT is run: the same answer on every machine, and interrupts left to the search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

SEED = 1
TICK = 0.1
"""[s] between two looks at a solver that works."""
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


def run(solver: cp_model.CpSolver, model: cp_model.CpModel, tick: Callable[[], None]) -> Any:
    """Solve, and return the status; `tick` is called several times a second meanwhile.

    What `tick` raises, or an interrupt, stops the solver at once and goes on.
    """
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(solver.solve, model)
        try:
            while not wait((working,), TICK).done:
                tick()
        except BaseException:
            _stop(solver, working)
            raise
    return working.result()


def _stop(solver: cp_model.CpSolver, working: Future[Any]) -> None:
    """Stop the solver; one that has not begun yet does not hear of it, so it is told until it ends."""
    while not wait((working,), 0.0).done:
        solver.stop_search()
        wait((working,), TICK)
