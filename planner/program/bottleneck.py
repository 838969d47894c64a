"""The smallest bottleneck, exactly: a small integer program over how many positions take which choice.

With n_max(s, c, t) as in `planner.program.bounds`, a bottleneck of t is possible only if

    C(t):   sum_c x[u,c] = m_u;   sum_{u,c} usage(c) x[u,c] <= capacity;   sum_{u,c} n_max(u,c,t) x[u,c] >= L

has a solution, where positions with the same row of n_max are one kind u of m_u positions. Kinds are few, so C(t) is
decided in milliseconds, and bisection over t finds where it becomes possible. (That more layers are better holds only
here: the rest of the step may want fewer.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.program.bounds import trim
from planner.program.solver import new_solver, weighted
from planner.program.subproblem import Assignment, Subproblem, most_layers

PRECISION = 3e-4
"""[-] relative width at which bisection stops."""
EFFORT = 0.5
"""[-] of one decision, in the solver's deterministic measure of work; undecided counts as possible."""


def smallest_bottleneck(sub: Subproblem, low: float, high: float) -> tuple[float, Assignment | None]:
    """Return a bound [ns] on tau between `low`, a valid one, and `high`, and a plan if one was found below `high`.

    The bound is infinite if nothing up to `high` is possible.
    """
    possible, found = decide(sub, high)
    if not possible:
        return float("inf"), None
    possible, start = decide(sub, low)
    if possible:
        return low, start or found
    # Optima lie close above the Lagrangian's bound: grow from there before bisecting.
    step, upper = 1e-3 * low, high
    while low + step < high:
        possible, start = decide(sub, low + step)
        if possible:
            upper, found = low + step, start
            break
        low, step = low + step, 2 * step
    while upper - low > PRECISION * upper:
        middle = (low + upper) / 2
        possible, start = decide(sub, middle)
        found = start or found
        low, upper = (low, middle) if possible else (middle, upper)
    return low, found


def decide(sub: Subproblem, limit: float) -> tuple[bool, Assignment | None]:
    """Tell whether C(limit) has a solution (or is undecided); the assignment is one, its layers trimmed to L."""
    most = most_layers(sub.busy, limit)
    if most.max(axis=1).min() == 0 or most.max(axis=1).sum() < sub.num_layers:
        return False, None
    kinds, member = np.unique(most, axis=0, return_inverse=True)
    member = member.reshape(-1)
    model = cp_model.CpModel()
    counts = {}
    for kind, row in enumerate(kinds):
        size = int((member == kind).sum())
        for choice in _worthwhile(row, sub):
            counts[kind, choice] = model.new_int_var(0, size, "")
        model.add(sum(count for key, count in counts.items() if key[0] == kind) == size)
    for usage, capacity in zip(sub.usage, sub.capacity, strict=True):
        model.add(weighted((usage[choice], count) for (_, choice), count in counts.items()) <= int(capacity))
    model.add(weighted((kinds[kind, choice], count) for (kind, choice), count in counts.items()) >= sub.num_layers)
    solver = new_solver(EFFORT)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return False, None
    if status == cp_model.UNKNOWN:
        return True, None
    chosen = np.zeros(sub.num_stages, dtype=np.int64)
    for kind in range(len(kinds)):
        values = {choice: solver.value(count) for (k, choice), count in counts.items() if k == kind}
        chosen[member == kind] = np.repeat(list(values), list(values.values()))
    held = most[np.arange(sub.num_stages), chosen]
    return True, Assignment(tuple(chosen.tolist()), trim(held, sub.num_layers))


def _worthwhile(most: NDArray[np.int64], sub: Subproblem) -> list[int]:
    """Return the choices that no other one beats in layers without taking more of any limit."""
    found: list[int] = []
    for choice in np.argsort(-most, kind="stable").tolist():
        usage = sub.usage[:, choice]
        if most[choice] > 0 and not any((sub.usage[:, other] <= usage).all() for other in found):
            found.append(choice)
    return found
