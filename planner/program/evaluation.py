"""What assignments of a subproblem cost: the objective in closed form, as `subproblem` states it, of many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER
from planner.program.subproblem import Assignment, Subproblem, Ticks


def slowest(sub: Subproblem) -> int:
    """Return a time [ns] that no plan of the subproblem exceeds."""
    time, sync = sub.positions.time, sub.sync
    stages = np.where(time < NEVER, time, 0).max(axis=(1, 2)).sum()
    hops = sub.num_stages * (sub.hops[0] + sub.hops[1]).max(initial=0)
    exchange = np.where(time < NEVER, sync, 0).max()
    return int((sub.num_passes + sub.virtual_stages) * len(sub.family.schedule.lanes) * (stages + hops) + exchange)


def evaluate(sub: Subproblem, assignment: Assignment) -> int:
    """Return the objective [ns] of an assignment, rounded up."""
    return int(objectives(sub, np.array([assignment.choices]), np.array([assignment.layers]))[0])


def objectives(sub: Subproblem, choices: NDArray[np.int64], layers: NDArray[np.int64]) -> Ticks:
    """Return (K,) the objectives [ns] of K assignments, rounded up; NEVER where a stage does not fit.

    Args:
        sub: the subproblem.
        choices: (K, position)
        layers: (K, position) from 1; more than any stage can have counts as not fitting.

    """
    positions, width = sub.positions, sub.positions.time.shape[2]
    where = (np.arange(sub.num_stages), choices, np.clip(layers, 1, width) - 1)
    fits = ((positions.time[where] < NEVER) & (layers >= 1) & (layers <= width)).all(axis=1)
    forward, backward, sync = (
        np.where(fits[:, None], array[where], 0) for array in (positions.forward, positions.backward, sub.sync)
    )
    ahead, back = sub.hops[0, choices[:, :-1], choices[:, 1:]], sub.hops[1, choices[:, :-1], choices[:, 1:]]
    none = np.zeros((len(choices), 1), dtype=np.int64)
    behind = np.concatenate([none, np.cumsum(backward[:, :-1] + back, axis=1)], axis=1)
    tau = bottlenecks(sub, forward, backward, ahead, back)
    fill = (forward + backward).sum(axis=1) + (ahead + back).sum(axis=1)
    around = sub.hops[:, choices[:, -1], choices[:, 0]] if sub.turns else np.zeros((2, len(choices)), dtype=np.int64)
    turn = fill + around.sum(axis=0)
    if sub.turns:
        tau = np.maximum.reduce([tau, *around, _uneven_paces(sub, choices, forward + backward)])
    if sub.critical is not None:
        weight = np.where(fits[:, None], positions.weight[where], 0)
        tau = np.maximum(tau, _trip_paces(sub, fill - sub.critical.split * weight.sum(axis=1), around.sum(axis=0)))
        rest = np.maximum(tau, _paths(sub, choices, where, fits)) + sync.max(axis=1)
        return np.where(fits, (sub.num_passes - 1) * tau + rest, NEVER)
    rest = fill + (sync - behind).max(axis=1)
    if sub.virtual_stages > 1:
        if sub.in_flight[0] < sub.num_passes:
            tau = np.maximum(tau, -(-turn // (2 * sub.num_stages)))
        rest += (sub.virtual_stages - 1) * np.maximum(0, turn - sub.num_stages * tau)
    return np.where(fits, (sub.num_passes - 1) * tau + rest, NEVER)


def _trip_paces(sub: Subproblem, once: Ticks, around: Ticks) -> Ticks:
    """Return (K,) [ns] the bound on tau from the micro-batches that are open at once, rounded up."""
    assert sub.critical is not None, "there are paths"
    chunks, opened = sub.virtual_stages, sub.critical.opened
    if not opened:
        return np.zeros_like(once)
    return -(-(chunks * once + (chunks - 1) * around) // (opened * sub.family.schedule.parts))


def _paths(
    sub: Subproblem,
    choices: NDArray[np.int64],
    where: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    fits: NDArray[np.bool_],
) -> Ticks:
    """Return (K,) [ns] what the longest critical path holds beside the passes of the slowest stage."""
    stages = np.where(fits[:, None], sub.fills[:, where[0], where[1], where[2]], 0).sum(axis=2)
    joints = sub.crossings[:, :, choices[:, :-1], choices[:, 1:]].sum(axis=(1, 3))
    wraps = sub.arounds[:, :, choices[:, -1], choices[:, 0]].sum(axis=1) if sub.turns else 0
    longest: Ticks = (stages + joints + wraps).max(axis=0)
    return longest


def _uneven_paces(sub: Subproblem, choices: NDArray[np.int64], time: Ticks) -> Ticks:
    """Return (K,) [ns] bounds on tau from chunks that are longer than others of their stage, rounded up."""
    paces = np.zeros(len(time), dtype=np.int64)
    for end, position in enumerate((0, sub.num_stages - 1)):
        longest = time[:, position] + sub.positions.uneven[end, choices[:, position]]
        others = np.delete(time, position, axis=1).max(axis=1)
        paces = np.maximum(paces, -(-(longest + (sub.virtual_stages - 1) * others) // sub.virtual_stages))
    return paces


def bottlenecks(sub: Subproblem, forward: Ticks, backward: Ticks, ahead: Ticks, back: Ticks) -> Ticks:
    """Return (K,) tau [ns], rounded up, of K assignments' times over (K, position) and (K, joint)."""
    none = np.zeros((len(forward), 1), dtype=np.int64)
    if sub.blocking:
        forward = forward + np.concatenate([ahead, none], axis=1)
        backward = backward + np.concatenate([none, back], axis=1)
        ahead, back = np.zeros_like(ahead), np.zeros_like(back)
    parts, links = {"forward": forward, "backward": backward}, {"forward": ahead, "backward": back}
    paced = np.zeros(len(forward), dtype=np.int64)
    for lane in sub.family.schedule.lanes:
        stage = sum((parts[part] for part in lane), start=np.zeros_like(forward)).max(axis=1)
        paced += np.maximum.reduce([stage, *(links[part].max(axis=1, initial=0) for part in lane)])
    held = np.array(sub.in_flight)
    time = np.concatenate([none, np.cumsum(forward + backward, axis=1)], axis=1)
    hops = np.concatenate([none, np.cumsum(ahead + back, axis=1)], axis=1)
    for start in np.flatnonzero(held < sub.num_passes).tolist() if sub.cycles else ():
        cycles = time[:, start + 1 :] - time[:, [start]] + hops[:, start:] - hops[:, [start]]
        weights = held[start] - held[start:] + 1
        paced = np.maximum(paced, (-(-cycles // weights)).max(axis=1))
    return paced
