"""A subproblem: a family with its number of stages, as arrays; and what an assignment of its positions costs.

Notation: positions s = 0..P-1, choices c, layers n, M micro-batches, D replicas. An assignment takes one choice c_s and
one n_s for every position. f, b, t = f + b: forward, backward and whole time of a pass, a micro-batch on a stage; x, y:
time of the forward and backward transfer to the next stage; w_s: passes in flight.

    tau  = sum over the schedule's lanes of the largest part of any stage or link in the lane
    tau >= (sum_{s..e} t_j + sum_{s..e-1} (x_j + y_j)) / (w_s - w_e + 1)        for every s <= e with w_s < M
    step = (M - 1) tau + sum_s t_s + sum_s (x_s + y_s) + max_s (sync_s - sum_{j<s} (b_j + y_j))

Where transfers block the stage that sends (1F1B), t_s + x_s + y_{s-1} takes the place of t_s and of the transfers in
the bounds on tau: a cycle from s to e also waits for x_e and y_{s-1}.

Where a stage has v chunks, a pass is of one chunk, M v takes the place of M, n counts slices of v layers, and with X, Y
from the last position to the first, and d_e what embedding or head add to one chunk beyond the mean,

    turn = sum_s t_s + sum_s (x_s + y_s) + X + Y
    tau >= X, Y;   2 P tau >= turn if w_0 < M v;   v tau >= t_e + d_e + (v - 1) t_s for the ends e, every s other than e
    step also holds (v - 1) max(0, turn - P tau)

Where a schedule is given by its passes (`planner.schedules.outline`), each critical path k of equal stages says what a
step holds beside the passes of the slowest stage: with i_s the backward time without its part w_s for the weights, and
phi_k, alpha_k, beta_k, gamma_k the passes and eta_k the transfers on the path beyond those of a rank, spread evenly,

    step = (M v - 1) tau + max(tau, max_k sum_s (alpha_k f_s + beta_k i_s + gamma_k w_s) + eta_k sum_s (x_s + y_s))
         + max_s sync_s
    o tau >= sum_s (f_s + i_s) + sum_s (x_s + y_s)   where o < M micro-batches are open at once; no other cycles
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Positions, Slots, Space, Table
from planner.costs.hop import blocks
from planner.program.critical import Critical, critical
from planner.program.packing import first_fit

Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class Assignment:
    """One choice and one number of layers (slices) for every position, by index into the subproblem's choices."""

    choices: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True)
class Subproblem:
    """Everything that the program knows of one subproblem."""

    family: Family
    num_stages: int
    num_layers: int
    """Slices of the model: layers, where a stage is one chunk."""
    positions: Positions
    """Arrays over (position, choice, n - 1)."""
    hops: Ticks
    """(2, choice, choice)"""
    blocking: bool
    """Whether a stage waits until what it sends has arrived."""
    critical: Critical | None
    """Of a schedule that is given by its passes."""
    usage: NDArray[np.int64]
    """(row, choice) devices that a stage of one replica takes from each limit."""
    capacity: NDArray[np.int64]
    """(row,) devices that one replica may take from each limit."""
    least: NDArray[np.int64]
    """(row,) devices that one replica must take of each limit."""
    slots: tuple[Slots, ...]
    """Node slots, for the groups in which tensor groups of unlike width may not add up; indices into the choices."""
    splits: NDArray[np.int64]
    """(choice,) copies of a stage in one pipeline."""
    widths: NDArray[np.int64]
    """(choice,) devices of one copy, which stay inside a node."""

    @property
    def num_choices(self) -> int:
        """Number of choices of a position."""
        return len(self.widths)

    @property
    def num_passes(self) -> int:
        """M v"""
        return self.family.num_passes

    @property
    def virtual_stages(self) -> int:
        """Chunks of a stage (v)."""
        return self.family.schedule.virtual_stages

    @cached_property
    def in_flight(self) -> tuple[int, ...]:
        """w_s of every position."""
        schedule, stages = self.family.schedule, self.num_stages
        return tuple(schedule.in_flight(s, stages, self.family.num_microbatches) for s in range(stages))

    @property
    def turns(self) -> bool:
        """Whether the last position hands on to the first one's next chunk."""
        return self.family.schedule.turns

    @property
    def cycles(self) -> bool:
        """Whether tau waits for cycles of neighbouring positions, by their in-flight counts."""
        return self.critical is None and self.in_flight[0] < self.num_passes

    @cached_property
    def fills(self) -> Ticks:
        """(k, position, choice, n - 1) [ns] what a column adds to each critical path, or else its time."""
        if self.critical is None:
            return self.positions.time[None]
        return self.critical.fills(self.positions)

    @cached_property
    def sync(self) -> Ticks:
        """(position, choice, n - 1) [ns] from the stage's last pass, or that of all stages, to the end of its sync."""
        return self.positions.sync if self.critical is None else self.critical.sync(self.positions)

    @cached_property
    def crossings(self) -> Ticks:
        """(k, 2, choice, choice) [ns] what a joint adds to each critical path."""
        if self.critical is None:
            return self.hops[None]
        return np.ceil(np.multiply.outer(self.critical.joints, self.hops)).astype(np.int64)

    @cached_property
    def arounds(self) -> Ticks:
        """(k, 2, choice, choice) [ns] what the way from the last position to the first adds to each critical path."""
        assert self.critical is not None, "there are paths"
        return np.ceil(np.multiply.outer(self.critical.wraps, self.hops)).astype(np.int64)

    @cached_property
    def busy(self) -> Ticks:
        """(position, choice, n - 1) [ns] that a pass each way keeps a stage busy at least: with its cheapest sends."""
        if not self.blocking or self.num_stages == 1:
            return self.positions.time
        sends = np.zeros((self.num_stages, self.num_choices), dtype=np.int64)
        sends[:-1] += self.hops[0].min(axis=1)
        sends[1:] += self.hops[1].min(axis=0)
        busy: Ticks = np.minimum(self.positions.time + sends[:, :, None], NEVER)
        return busy

    @property
    def rounding(self) -> int:
        """[ns] by which rounding the prices up may have raised the objective."""
        turns = (4 * (self.virtual_stages - 1) + 16 * (self.critical is not None)) * self.num_stages
        return 4 * self.num_passes * len(self.family.schedule.lanes) + 8 * self.num_stages + turns + 8


def build_subproblem(space: Space, table: Table, num_stages: int, limit: float = NEVER) -> Subproblem:
    """Return the subproblem of a family's pipelines with `num_stages`, without stages slower than `limit` [ns]."""
    indices = list(table.family.restriction.choices)
    replicas = table.family.num_replicas
    return Subproblem(
        family=table.family,
        num_stages=num_stages,
        num_layers=table.num_layers,
        positions=table.positions(num_stages, limit),
        hops=table.hops if num_stages > 1 else np.zeros((2, len(indices), len(indices)), dtype=np.int64),
        blocking=blocks(table.family.schedule, space.framework),
        critical=critical(table.family, num_stages),
        usage=space.usage[:, indices],
        capacity=space.capacity // replicas,
        least=-(-space.least // replicas),
        slots=tuple(_local_slots(slots, indices) for slots in space.slots if not _adds_up(slots, space, indices)),
        splits=space.splits[indices],
        widths=space.widths[indices] // space.splits[indices],
    )


def _local_slots(slots: Slots, indices: list[int]) -> Slots:
    local = tuple(position for position, index in enumerate(indices) if index in slots.choices)
    return Slots(choices=local, num_nodes=slots.num_nodes, devices_per_node=slots.devices_per_node)


def _adds_up(slots: Slots, space: Space, indices: list[int]) -> bool:
    """Tell whether any mix of widths fits as soon as their sum does: each divides the next, and the node."""
    widths = sorted({space.choices[i].block for i in slots.choices if i in indices})
    chain = [*widths, slots.devices_per_node]
    return all(larger % smaller == 0 for smaller, larger in pairwise(chain))


def is_allowed(sub: Subproblem, assignment: Assignment) -> bool:
    """Tell whether an assignment met without the solver keeps every limit; a tight fit of odd widths may be missed."""
    choices = list(assignment.choices)
    mirrored = (assignment.choices[::-1], assignment.layers[::-1]) == (assignment.choices, assignment.layers)
    if sub.family.schedule.directions > 1 and not mirrored:
        return False
    used = sub.usage[:, choices].sum(axis=1)
    if (used < sub.least).any() or (used > sub.capacity).any():
        return False
    for slots in sub.slots:
        counts: dict[int, int] = {}
        for choice in choices:
            if choice in slots.choices:
                width = int(sub.widths[choice])
                counts[width] = counts.get(width, 0) + sub.family.num_replicas * int(sub.splits[choice])
        if not first_fit(counts, slots.num_nodes, slots.devices_per_node):
            return False
    return True


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
        tau = np.maximum(tau, _trip_paces(sub, fill - weight.sum(axis=1), around.sum(axis=0)))
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


def most_layers(time: NDArray[np.int64], limit: float) -> NDArray[np.int64]:
    """Return (position, choice) the most layers that take no longer than `limit` [ns]; 0 where none do.

    Fewer may be impossible: where layers must be even, only one number is allowed.
    """
    layers = np.arange(1, time.shape[2] + 1)
    most: NDArray[np.int64] = np.where(time <= limit, layers, 0).max(axis=2)
    return most
