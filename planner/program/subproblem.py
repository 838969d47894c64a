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


def most_layers(time: NDArray[np.int64], limit: float) -> NDArray[np.int64]:
    """Return (position, choice) the most layers that take no longer than `limit` [ns]; 0 where none do.

    Fewer may be impossible: where layers must be even, only one number is allowed.
    """
    layers = np.arange(1, time.shape[2] + 1)
    most: NDArray[np.int64] = np.where(time <= limit, layers, 0).max(axis=2)
    return most
