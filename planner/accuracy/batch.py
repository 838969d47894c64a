"""Settings that the same formulas price, put together so that one call prices them all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from planner.accuracy.setting import Setting
from planner.costs.batch import stack, structure
from planner.costs.uniform import Kind, Uniform


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs that the same formulas price."""

    rows: tuple[int, ...]
    kind: Kind
    layouts: Uniform
    """All of them, stacked."""


def batches(settings: Sequence[Setting]) -> list[Batch]:
    """Return the settings in batches; `Batch.rows` are their places among `settings`."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, item in enumerate(settings):
        groups[item.kind, structure(item.layout)].append(index)
    return [
        Batch(tuple(rows), settings[rows[0]].kind, stack([settings[row].layout for row in rows]))
        for rows in groups.values()
    ]
