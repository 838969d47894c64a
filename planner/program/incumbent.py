"""First plans without a solver: the same choice and number of layers at every position."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Space, Table
from planner.program.subproblem import Assignment, Subproblem, build_subproblem


def uniform_starts(space: Space, table: Table, stages: NDArray[np.int64]) -> Iterator[tuple[Subproblem, Assignment]]:
    """Yield the family's best uniform plan, if it has one that fits; judged without cycles, transfers and sync."""
    best: tuple[float, int, int] | None = None
    usage = space.usage[:, list(table.family.restriction.choices)]
    capacity = space.capacity // table.family.num_replicas
    even = stages[(table.num_layers % stages == 0) & (table.num_layers <= table.max_layers * stages)]
    for num_stages in even.tolist():
        time = _uniform_times(table, num_stages)
        fits = (time < NEVER).all(axis=0) & (usage * num_stages <= capacity[:, None]).all(axis=0)
        total = (table.family.num_passes - 1) * time.max(axis=0) + time.sum(axis=0)
        for choice in np.flatnonzero(fits).tolist():
            if best is None or total[choice] < best[0]:
                best = (float(total[choice]), num_stages, choice)
    if best is not None:
        _, num_stages, choice = best
        layers = table.num_layers // num_stages
        yield (
            build_subproblem(space, table, num_stages),
            Assignment((choice,) * num_stages, (layers,) * num_stages),
        )


def _uniform_times(table: Table, num_stages: int) -> NDArray[np.int64]:
    """Return (position, choice) [ns] with equal layers at every position."""
    rows = table.rows(num_stages)
    layer = table.num_layers // num_stages - 1
    first, last = table.end(0, num_stages), table.end(num_stages - 1, num_stages)
    time = table.prices(first=False, last=False).time[rows, :, layer]
    time[0], time[-1] = first.time[rows[0], :, layer], last.time[rows[-1], :, layer]
    return time
