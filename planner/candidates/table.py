"""Prices of a family: time, memory and recompute of every choice and number of layers, as arrays.

Axes of the arrays, in this order: micro-batches in flight F (1..), choice, number of layers n (1..L). Times are integer
nanoseconds, rounded up: a plan is never cheaper than it looks, and a sum of integers is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from planner.candidates.choices import Choice
from planner.candidates.families import Family
from planner.costs.peaks import optimizer_peak, peak_memory, total
from planner.costs.stage import (
    LayerCosts,
    StageTerms,
    backward_time,
    forward_time,
    stage_memory,
    stage_terms,
    sync_time,
)
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.units import NANOSECOND

Ticks = NDArray[np.int64]
"""[ns]"""
NEVER = 2**60
"""[ns] the time of what does not fit."""
BASE_POLICIES = ("none", "selective")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of stages in one role (first, middle, last or only stage of a pipeline)."""

    forward: Ticks
    """(F, choice, n); NEVER where the stage does not fit."""
    backward: Ticks
    """(F, choice, n) recompute included."""
    sync: Ticks
    """(F, choice, n)"""
    recomputed: NDArray[np.int64]
    """(F, choice, n) layers that must be fully recomputed."""
    policy: NDArray[np.int64]
    """(F, choice, n) index into BASE_POLICIES of the other layers."""

    @cached_property
    def time(self) -> Ticks:
        """(F, choice, n) forward and backward."""
        time: Ticks = np.minimum(self.forward + self.backward, NEVER)
        return time


@dataclass(frozen=True)
class Positions:
    """Prices of the positions of one pipeline: arrays over (position, choice, n), stacked when first asked for."""

    first: Prices
    middle: Prices
    last: Prices
    rows: NDArray[np.int64]
    """(position,) row of the prices that each position reads."""
    width: int
    """Largest number of layers of interest."""
    even: int = 0
    """The only number of layers allowed; zero if any is."""

    def _stack(self, name: str) -> NDArray[np.int64]:
        array: NDArray[np.int64] = getattr(self.middle, name)[self.rows, :, : self.width]
        array[0] = getattr(self.first, name)[self.rows[0], :, : self.width]
        array[-1] = getattr(self.last, name)[self.rows[-1], :, : self.width]
        if self.even and name in {"time", "forward", "backward"}:
            others = np.arange(1, self.width + 1) != self.even
            array[:, :, others] = NEVER
        return array

    @cached_property
    def time(self) -> Ticks:
        """[ns] forward and backward."""
        return self._stack("time")

    @cached_property
    def forward(self) -> Ticks:
        """[ns]"""
        return self._stack("forward")

    @cached_property
    def backward(self) -> Ticks:
        """[ns]"""
        return self._stack("backward")

    @cached_property
    def sync(self) -> Ticks:
        """[ns]"""
        return self._stack("sync")

    @cached_property
    def recomputed(self) -> NDArray[np.int64]:
        """Fully recomputed layers."""
        return self._stack("recomputed")

    @cached_property
    def policy(self) -> NDArray[np.int64]:
        """Index into BASE_POLICIES of the other layers."""
        return self._stack("policy")


class Table:
    """The prices of one family, by role; roles are priced when they are first asked for."""

    def __init__(
        self,
        family: Family,
        choices: Sequence[Choice],
        costs: Sequence[LayerCosts],
        hops: Ticks,
        model: Model,
        job: Job,
        framework: Framework,
        max_stages: int,
        max_layers: int,
    ) -> None:
        """Price nothing yet: keep what prices are made of; stages of more than `max_layers` are of no interest."""
        self.family = family
        self.choices = choices
        self._costs = costs
        self.hops = hops
        """(2, choice, choice) [ns]: forward and backward transfer from the row's choice to the column's."""
        self.num_layers, self.max_layers = model.num_layers, max_layers
        self._job, self._framework = job, framework
        self._roles: dict[tuple[bool, bool], Prices] = {}
        stages = range(max_stages)
        in_flight = family.schedule.in_flight
        held = {in_flight(stage, max_stages, family.num_microbatches) for stage in stages}
        self.in_flights = np.arange(1, max(held) + 1) if len(held) > 1 else np.array([max(held)])
        """(F,) the in-flight counts that are priced."""

    def prices(self, *, first: bool, last: bool) -> Prices:
        """Return the prices of a role."""
        role = (first, last)
        if role not in self._roles:
            self._roles[role] = self._price(first=first, last=last)
        return self._roles[role]

    def positions(self, num_stages: int, limit: float = NEVER) -> Positions:
        """Return the prices of a pipeline of `num_stages`, up to the layers that may run within `limit` [ns]."""
        family = self.family
        held = [family.schedule.in_flight(s, num_stages, family.num_microbatches) for s in range(num_stages)]
        rows = np.searchsorted(self.in_flights, held)
        first = self.prices(first=True, last=num_stages == 1)
        last = self.prices(first=num_stages == 1, last=True)
        middle = self.prices(first=False, last=False) if num_stages > 2 else first
        used = ((first, rows[0]), (middle, rows.min()), (last, rows[-1]))
        most = max(int((prices.time[row] <= limit).any(axis=0).sum()) for prices, row in used)
        width = max(1, min(self.num_layers - num_stages + 1, most))
        return Positions(
            first=first,
            middle=middle,
            last=last,
            rows=rows,
            width=width,
            even=self.num_layers // num_stages if family.restriction.even_layers else 0,
        )

    def _price(self, *, first: bool, last: bool) -> Prices:
        """Price a role under each base policy and keep the faster one for every stage."""
        forced = self.family.restriction.recompute
        bases: tuple[str, ...] = ("selective",) if forced == "selective" else ("none",)
        if forced == "any" and any(self._selective_saves(costs) for costs in self._costs):
            bases = BASE_POLICIES
        priced = [self._price_policy(policy, first=first, last=last) for policy in bases]
        best = priced[0]
        for other in priced[1:]:
            better = other.time < best.time
            best = Prices(
                **{
                    field.name: np.where(better, getattr(other, field.name), getattr(best, field.name))
                    for field in fields(Prices)
                }
            )
        return best

    @staticmethod
    def _selective_saves(costs: LayerCosts) -> bool:
        kept = dict(costs.body.kept)
        return bool(kept["selective"] < kept["none"])

    def _price_policy(self, policy: str, *, first: bool, last: bool) -> Prices:
        family, forced = self.family, self.family.restriction.recompute
        terms = stack_terms(
            [
                stage_terms(
                    costs,
                    self._job,
                    self._framework,
                    policy=policy,
                    num_replicas=family.num_replicas,
                    zero_stage=family.zero_stage,
                    first=first,
                    last=last,
                )
                for costs in self._costs
            ]
        )
        layers = np.arange(1, self.max_layers + 1)
        limits = np.array([[choice.group.device.memory * (1 - self._job.headroom)] for choice in self.choices])
        in_flight = self.in_flights[:, None, None]
        recomputed = recompute_needed(terms, layers, in_flight, limits, forced)
        fits = recomputed <= layers
        recomputed = np.minimum(recomputed, layers)
        backward_s = backward_time(terms, layers, recomputed)
        forward = np.broadcast_to(to_ticks(forward_time(terms, layers)), fits.shape)
        return Prices(
            forward=np.where(fits, forward, NEVER),
            backward=np.where(fits, to_ticks(backward_s), NEVER),
            sync=np.where(fits, to_ticks(sync_time(terms, layers, backward_s)), NEVER),
            recomputed=recomputed,
            policy=np.full(fits.shape, BASE_POLICIES.index(policy), dtype=np.int64),
        )


def stack_terms(terms: Sequence[StageTerms]) -> StageTerms:
    """Return terms whose fields are (choice, 1) arrays, so that the stage's formulas price all choices at once."""
    numeric = [field.name for field in fields(StageTerms) if not field.name.startswith("parts")]
    arrays = {name: np.array([[getattr(term, name)] for term in terms], dtype=float) for name in numeric}
    return StageTerms(**cast("dict[str, Any]", arrays), parts_layer=(), parts_edge=())


def recompute_needed(
    terms: StageTerms, layers: NDArray[np.int64], in_flight: NDArray[np.int64], limits: NDArray[np.float64], forced: str
) -> NDArray[np.int64]:
    """Return (F, choice, n): the fewest recomputed layers with which the stage fits, more than n if none do.

    Activations fall by (kept - kept_recomputed) F with each recomputed layer, and rise once by the live layer; no
    recompute helps where the optimizer's peaks are too large. Fewer recomputed layers are always faster, so no other
    count need be priced.
    """
    never = layers + 1

    def fits(count: NDArray[np.int64]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = peak_memory(terms, layers, count, in_flight) <= limits
        return found

    none = np.zeros_like(layers)
    if forced in {"none", "selective"}:
        return np.where(fits(none), 0, never)
    if forced == "full":
        return np.where(fits(layers), layers, never)
    excess = total(stage_memory(terms, layers, none, in_flight)) - limits
    saving = np.maximum((terms.kept_layer - terms.kept_recomputed) * in_flight * terms.fragmentation, 1e-9)
    count = np.ceil((excess + terms.live_layer * terms.fragmentation) / saving)
    count = np.where(excess <= 0, 0, np.clip(count, 1, never)).astype(np.int64)
    count = np.where(optimizer_peak(terms, layers) <= limits, count, never)
    # Rounding in the division may be one layer short; one more is then enough.
    short = (count > 0) & (count <= layers) & ~fits(count)
    return np.where(short, count + 1, count)


def to_ticks(seconds: object) -> Ticks:
    """Return seconds as whole nanoseconds, rounded up."""
    return np.minimum(np.ceil(np.asarray(seconds) / NANOSECOND), NEVER).astype(np.int64)
