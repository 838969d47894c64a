"""Make a plan of a subproblem better by small changes, until none helps: a good plan early closes many sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.program.evaluation import objectives
from planner.program.subproblem import Assignment, Subproblem, is_allowed

Counts = NDArray[np.int64]
ROUNDS = 40
MOST_STAGES = 24
"""Stages up to which plans are improved: the work grows with their fourth power."""
PAIRED_STAGES = 16
"""Stages up to which a change of choice is tried together with every move of a layer."""


def improve(sub: Subproblem, start: Assignment) -> Assignment:
    """Return the plan in which no single change helps any more (or `start`): the best change is made, again and again.

    Pipelines that run from both ends are left as they are: a single change would leave facing stages unlike.

    A change gives one position another choice, or moves a layer between two positions, or both; or swaps the choices
    and layers of two positions.
    """
    if sub.num_stages > MOST_STAGES or sub.family.schedule.directions > 1:
        return start
    choices, layers = np.array(start.choices), np.array(start.layers)
    best = int(objectives(sub, choices[None], layers[None])[0])
    for _ in range(ROUNDS):
        tried_choices, tried_layers = _changes(sub, choices, layers)
        used = sub.usage[:, tried_choices].sum(axis=2).T
        kept = (used <= sub.capacity).all(axis=1) & (used >= sub.least).all(axis=1)
        if not kept.any():
            break
        tried_choices, tried_layers = tried_choices[kept], tried_layers[kept]
        values = objectives(sub, tried_choices, tried_layers)
        chosen = int(values.argmin())
        found = Assignment(tuple(tried_choices[chosen].tolist()), tuple(tried_layers[chosen].tolist()))
        if int(values[chosen]) >= best or not is_allowed(sub, found):
            break
        best, choices, layers = int(values[chosen]), tried_choices[chosen], tried_layers[chosen]
    return Assignment(tuple(choices.tolist()), tuple(layers.tolist()))


def _changes(sub: Subproblem, choices: Counts, layers: Counts) -> tuple[Counts, Counts]:
    """Return (K, position) choices and layers of every change."""
    stages, eye = len(choices), np.eye(len(choices), dtype=np.int64)
    others = [(s, c) for s in range(stages) for c in range(sub.num_choices) if c != choices[s]]
    switched = np.repeat(choices[None], len(others) + 1, axis=0)
    for row, (position, choice) in enumerate(others, start=1):
        switched[row, position] = choice
    moves = (eye[:, None, :] - eye[None, :, :]).reshape(-1, stages)
    moves = np.concatenate([np.zeros((1, stages), dtype=np.int64), moves[moves.any(axis=1)]])
    if stages > PAIRED_STAGES:
        alone = np.concatenate([switched, np.repeat(choices[None], len(moves), axis=0)])
        moved = np.concatenate([np.repeat(layers[None], len(switched), axis=0), layers + moves])
    else:
        alone = np.repeat(switched, len(moves), axis=0)
        moved = np.tile(layers + moves, (len(switched), 1))
    first, second = np.triu_indices(stages, k=1)
    order = np.tile(np.arange(stages), (len(first), 1))
    rows = np.arange(len(first))
    order[rows, first], order[rows, second] = second, first
    return np.concatenate([alone, choices[order]]), np.concatenate([moved, layers[order]])
