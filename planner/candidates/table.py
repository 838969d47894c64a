"""Prices of a family: time, memory and recompute of every choice and number of slices, computed role by role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from planner.candidates.choices import Choice
from planner.candidates.families import Family
from planner.candidates.prices import BASE_POLICIES, NEVER, Holding, Positions, Prices, Ticks
from planner.costs.peaks import optimizer_peak, peak_memory, total
from planner.costs.stage import (
    LayerCosts,
    StageTerms,
    backward_time,
    forward_time,
    predict_time,
    regather_time,
    stage_memory,
    sync_time,
    weight_time,
)
from planner.domain.job import Job
from planner.domain.model import Model, Number
from planner.schedules import held_passes
from planner.units import NANOSECOND


class Table:
    """The prices of one family, by role; roles are priced when they are first asked for."""

    def __init__(
        self,
        family: Family,
        choices: Sequence[Choice],
        costs: Sequence[LayerCosts],
        hops: Ticks,
        terms: Callable[[str, bool, bool], StageTerms],
        model: Model,
        job: Job,
        stage_counts: Sequence[int],
        max_layers: int,
    ) -> None:
        """Price nothing yet: keep what prices are made of.

        `terms` are asked with base policy, first and last. More than `max_layers` slices are of no interest.
        """
        self.family = family
        self.choices = choices
        self._costs, self._terms = costs, terms
        self.hops = hops
        """(2, choice, choice) [ns]: forward and backward transfer from the row's choice to the column's."""
        self.num_layers, self.max_layers = family.num_slices(model.num_layers), max_layers
        """Slices of the model, and the most that a stage of interest has."""
        self._job = job
        self._roles: dict[tuple[bool, bool], Prices] = {}
        self._stage_counts = stage_counts
        self.holdings = possible_holdings(family, stage_counts)
        """(F,) what any position may hold, ascending."""

    def prices(self, *, first: bool, last: bool) -> Prices:
        """Return the prices of a role."""
        role = (first, last)
        if role not in self._roles:
            self._roles[role] = self._price(first=first, last=last)
        return self._roles[role]

    def positions(self, num_stages: int, limit: float = NEVER) -> Positions:
        """Return the prices of a pipeline of `num_stages`, up to the layers that may run within `limit` [ns]."""
        family = self.family
        first, last = self.end(0, num_stages), self.end(num_stages - 1, num_stages)
        middle = self.prices(first=False, last=False) if num_stages > 2 else first
        rows = self.rows(num_stages)
        # Where none predicts its weights, the one that holds least has room for the most layers.
        inner = np.unique(rows[1:-1])[: None if any(one.predictions for one in self.holdings) else 1]
        used = [(first, rows[0]), (last, rows[-1]), *((middle, row) for row in inner)]
        most = max(int((prices.time[row] <= limit).any(axis=0).sum()) for prices, row in used)
        width = max(1, min(self.num_layers - num_stages + 1, most))
        return Positions(
            first=first,
            middle=middle,
            last=last,
            rows=rows,
            width=width,
            uneven=np.stack([self._uneven(first=end == 0, last=end == 1) for end in (0, 1)]),
            even=self.num_layers // num_stages if family.restriction.even_layers else 0,
        )

    def end(self, stage: int, num_stages: int) -> Prices:
        """Return the prices of the first or the last stage of a pipeline."""
        first, last = self.family.schedule.ends(stage, num_stages)
        return self.prices(first=first, last=last)

    def rows(self, num_stages: int) -> NDArray[np.int64]:
        """Return (position,) the row of the prices of its role that each position of a pipeline reads."""
        held = holdings(self.family, num_stages)
        places = {holding: row for row, holding in enumerate(self.holdings)}
        rows = np.array([places[holding] for holding in held])
        for stage in {0, num_stages - 1}:
            rows[stage] = self.end(stage, num_stages).row(held[stage])
        return rows

    def _role_holdings(self, *, first: bool, last: bool) -> tuple[Holding, ...]:
        """Return what a stage in a role may hold, ascending."""
        if first == last:
            return self.holdings
        return tuple(sorted({holdings(self.family, stages)[0 if first else -1] for stages in self._stage_counts}))

    def _uneven(self, *, first: bool, last: bool) -> Ticks:
        """Return (choice,) [ns] by which the chunk with the embedding or the head takes longer than the mean."""
        chunks = self.family.schedule.virtual_stages
        if chunks == 1:
            return np.zeros(len(self.choices), dtype=np.int64)
        terms = self._terms("none", first, last)
        return to_ticks((1 - 1 / chunks) * (terms.forward_edge + terms.backward_edge))[:, 0]

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
                holdings=best.holdings,
                **{
                    field.name: np.where(better, getattr(other, field.name), getattr(best, field.name))
                    for field in fields(Prices)[1:]
                },
            )
        return best

    @staticmethod
    def _selective_saves(costs: LayerCosts) -> bool:
        kept = dict(costs.body.kept)
        return bool(kept["selective"] < kept["none"])

    def _price_policy(self, policy: str, *, first: bool, last: bool) -> Prices:
        forced = self.family.restriction.recompute
        terms = self._terms(policy, first, last)
        parts = self.family.schedule.parts
        layers = parts * np.arange(1, self.max_layers + 1)
        limits = np.array([[choice.group.device.memory * (1 - self._job.headroom)] for choice in self.choices])
        found = self._role_holdings(first=first, last=last)
        held, versions = (np.array([one[place] for one in found])[:, None, None] for place in (0, 1))
        stashed = replace(
            terms, weights_layer=versions * terms.weights_layer, weights_edge=versions * terms.weights_edge
        )
        at_update = 0.0 if self.family.schedule.flushes else held - 1.0
        recomputed = recompute_needed(stashed, layers, held / parts, limits, forced, parts, at_update)
        fits = recomputed <= layers
        recomputed = np.minimum(recomputed, layers)
        backward_s = backward_time(terms, layers, recomputed)
        forward = np.broadcast_to(to_ticks(forward_time(terms, layers) / parts), fits.shape)
        weight = np.broadcast_to(to_ticks(weight_time(terms, layers) / parts), fits.shape)
        predicted = np.array([one.predictions for one in found])[:, None, None] * predict_time(terms, layers)
        predicted = predicted + np.array([one.gathers for one in found])[:, None, None] * regather_time(terms, layers)
        syncs = [to_ticks(sync + predicted) for sync in self._syncs(policy, first, last, layers, recomputed)]
        if self.family.schedule.updates_each:
            backward_s, syncs = backward_s + sync_time(terms, layers, backward_s) + predicted, [np.zeros_like(syncs[0])]
        return Prices(
            holdings=found,
            forward=np.where(fits, forward, NEVER),
            backward=np.where(fits, to_ticks(backward_s / parts), NEVER),
            weight=np.where(fits, weight, NEVER),
            sync=np.where(fits, np.maximum.reduce(syncs), NEVER),
            syncs=np.where(fits, np.add.reduce(syncs), NEVER),
            recomputed=recomputed // self.family.schedule.directions,
            policy=np.full(fits.shape, BASE_POLICIES.index(policy), dtype=np.int64),
        )

    def _syncs(
        self, policy: str, first: bool, last: bool, layers: NDArray[np.int64], recomputed: NDArray[np.int64]
    ) -> list[NDArray[np.float64]]:
        """Return (F, choice, n) [s] of each exchange of a stage: of all it runs, or of each virtual stage its own."""
        schedule = self.family.schedule
        roles = [(first, last)]
        if schedule.eager_sync:
            ends = [(True, False)] * first + [(False, True)] * last
            roles = ends + [(False, False)] * (schedule.parts - len(ends))
        size, replayed = layers / len(roles), recomputed / len(roles)
        shares = [self._terms(policy, *role) for role in roles]
        return [sync_time(terms, size, backward_time(terms, size, replayed)) for terms in shares]


def holdings(family: Family, num_stages: int) -> list[Holding]:
    """Return (position,) what is held in a pipeline of `num_stages`."""
    schedule, batches = family.schedule, family.num_microbatches
    if schedule.orders is None:
        return [Holding(schedule.in_flight(stage, num_stages, batches)) for stage in range(num_stages)]
    found = []
    for rank, in_flight in enumerate(held_passes(schedule, num_stages, batches)):
        shape = rank, num_stages, batches
        predictions = schedule.predictions(*shape)
        gathers = predictions > 0 and not schedule.shares_weights(*shape)
        found.append(Holding(in_flight, schedule.weight_versions(*shape), predictions, gathers))
    return found


def stack_terms(terms: Sequence[StageTerms]) -> StageTerms:
    """Return terms whose fields are (choice, 1) arrays, so that the stage's formulas price all choices at once."""
    numeric = [field.name for field in fields(StageTerms) if not field.name.startswith("parts")]
    arrays = {name: np.array([[getattr(term, name)] for term in terms], dtype=float) for name in numeric}
    return StageTerms(**cast("dict[str, Any]", arrays), parts_layer=(), parts_edge=())


def possible_holdings(family: Family, stage_counts: Sequence[int]) -> tuple[Holding, ...]:
    """Return holdings, ascending, among them those of all positions of pipelines of `stage_counts` stages."""
    if family.schedule.virtual_stages > 1 or family.schedule.orders is not None:
        return tuple(sorted({held for stages in stage_counts for held in holdings(family, stages)}))
    held = set(holdings(family, max(stage_counts)))
    return tuple(map(Holding, range(1, max(held).in_flight + 1))) if len(held) > 1 else tuple(held)


def recompute_needed(
    terms: StageTerms,
    layers: NDArray[np.int64],
    in_flight: NDArray[np.float64],
    limits: NDArray[np.float64],
    forced: str,
    chunks: int = 1,
    at_update: Number = 0.0,
) -> NDArray[np.int64]:
    """Return (F, choice, n): the fewest recomputed layers with which the stage fits, more than n if none do.

    Activations fall by (kept - kept_recomputed) F with each recomputed layer, and rise once by the live layer. At the
    optimizer's peaks those of `at_update` micro-batches are held; without any no recompute helps there. Fewer
    recomputed layers are always faster, so no other count need be priced. All chunks recompute the same number of
    layers, which Megatron-LM's --recompute-num-layers gives for each.
    """
    never = layers + chunks

    def fits(count: NDArray[np.int64]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = peak_memory(terms, layers, count, in_flight, at_update) <= limits
        return found

    none = np.zeros_like(layers)
    if forced in {"none", "selective"}:
        return np.where(fits(none), 0, never)
    if forced == "full":
        return np.where(fits(layers), layers, never)
    excess = total(stage_memory(terms, layers, none, in_flight)) - limits
    saving = (terms.kept_layer - terms.kept_recomputed) * terms.fragmentation
    updating = optimizer_peak(terms, layers, at_update) - limits
    needed = np.maximum(
        (excess + terms.live_layer * terms.fragmentation) / np.maximum(saving * in_flight, 1e-9),
        updating / np.maximum(saving * at_update, 1e-9),
    )
    enough = (excess <= 0) & (updating <= 0)
    count = np.where(enough, 0, np.clip(chunks * np.ceil(needed / chunks), chunks, never)).astype(np.int64)
    # Rounding in the division may be one layer a chunk short; one more is then enough.
    short = (count > 0) & (count <= layers) & ~fits(count)
    return np.where(short, count + chunks, count)


def to_ticks(seconds: object) -> Ticks:
    """Return seconds as whole nanoseconds, rounded up."""
    return np.minimum(np.ceil(np.asarray(seconds) / NANOSECOND), NEVER).astype(np.int64)
