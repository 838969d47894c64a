"""How a set of plans is refined: cheap bounds on many plans first, exact ones on few, CP-SAT on what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Space, Table
from planner.program.bounds import Bound, Bounder
from planner.program.evaluation import slowest
from planner.program.incumbent import uniform_starts
from planner.program.rates import best_rates, positions_held, rate_pace, rest_bounds, step_bounds, table_bounds
from planner.program.sets import BoundedSet, FamilySet, PipelineSet
from planner.program.subproblem import Subproblem, build_subproblem
from planner.units import NANOSECOND

if TYPE_CHECKING:
    from planner.program.search import Search


PIECES = 4
"""Intervals of bottlenecks that are counted one by one."""


class Refiner:
    """Refines sets of plans of one space, telling the search which plans it meets and which sets it closes."""

    def __init__(self, space: Space, search: Search) -> None:
        """Refine sets of `space` on behalf of `search`."""
        self.space, self.search = space, search
        chunks = max((family.schedule.virtual_stages for family in space.families), default=1)
        self.rounding = 4 * chunks * space.job.global_batch + 10 * space.model.num_layers
        """[ns] by which rounding prices up may have raised a bound."""
        self._held: dict[tuple[object, ...], NDArray[np.int64]] = {}

    def families(self) -> Iterator[FamilySet]:
        """Yield all families, with bounds that need no prices."""
        space, paced = self.space, {}
        for family in space.families:
            indices = list(family.restriction.choices)
            stages = np.array([p for p in space.stage_counts(family) if space.allows_stages(p)], dtype=np.int64)
            stages = stages[self._can_use_least(family, stages)]
            if family.restriction.even_layers:
                stages = stages[family.num_slices(space.model.num_layers) % stages == 0]
            if not len(stages):
                continue
            self.search.result.subproblems += len(stages)
            setting = (family.micro_batch, family.num_replicas, family.schedule.virtual_stages, family.pipelined)
            key = (family.restriction.choices, *setting, *stages.tolist())
            if key not in paced:
                slices = family.num_slices(space.model.num_layers)
                bodies = [space.costs(i, family.micro_batch, pipelined=family.pipelined).body for i in indices]
                layer = np.array([float(body.forward + body.backward) for body in bodies]) / NANOSECOND
                capacity = space.capacity // family.num_replicas
                rate, _ = best_rates(1 / layer[None, :], stages[:, None], space.usage[:, indices], capacity)
                paced[key] = (rate_pace(slices, rate), float(slices * layer.min()))
            paces, rest = paced[key]
            held = np.isfinite(paces)
            if held.any():
                whole = np.full(int(held.sum()), rest + self._edges(family))
                rests = whole if family.schedule.orders is None else paces[held]
                yield FamilySet(family=family, stages=stages[held], paces=paces[held], rests=rests)

    def price(self, entry: FamilySet) -> Iterator[PipelineSet]:
        """Price a family, look for uniform plans, and yield what can hold the layers, stage count by stage count."""
        space, family = self.space, entry.family
        left = entry.bounds < self.search.cutoff
        if not left.all():
            self.search.close(entry.only(~left), self.search.cutoff)
            entry = entry.only(left)
        if not left.any():
            return
        cutoff, highest = self.search.cutoff, self._highest(family, float(entry.rests.min()))
        table = space.table(family, highest, entry.stages.tolist())
        usage, capacity = space.usage[:, list(family.restriction.choices)], space.capacity // family.num_replicas
        counts = self._positions_held(table, entry.stages)
        paces, rests, prices = table_bounds(table, counts, usage, capacity)
        spelled = family.schedule.orders is None
        besides = self._edges(family) + (entry.stages - 1) * (table.hops[0] + table.hops[1]).min()
        paces = np.maximum(paces, entry.paces)
        rests = np.maximum(rests + besides if spelled else paces, entry.rests)
        bounds = step_bounds(family.num_passes, paces, rests)
        for start in uniform_starts(space, table, entry.stages[bounds < self.search.best]):
            self.search.meet(*start)
        hopeful = np.flatnonzero(bounds < self.search.cutoff)
        if np.isfinite(self.search.cutoff) and len(hopeful) and spelled:
            cutoff, highest = self.search.cutoff, self._highest(family, float(rests[hopeful].min()))
            within = rest_bounds(table, counts[hopeful], usage, capacity, prices[hopeful], highest)
            rests[hopeful] = np.maximum(rests[hopeful], within + besides[hopeful])
            bounds = step_bounds(family.num_passes, paces, rests)
        yield from self._pipelines(entry, table, prices, paces, rests, np.minimum(bounds, cutoff), highest)

    def _pipelines(
        self,
        entry: FamilySet,
        table: Table,
        prices: NDArray[np.float64],
        paces: NDArray[np.float64],
        rests: NDArray[np.float64],
        bounds: NDArray[np.float64],
        highest: float,
    ) -> Iterator[PipelineSet]:
        """Yield a family's sets; close those that hold nothing below the cutoff, drop those that hold nothing at all.

        Prices end at stages of `highest` [ns]: a plan with a slower one is no faster than the cutoff, and its replay
        takes M times as long.
        """
        replays = np.maximum(entry.family.num_passes * np.minimum(paces, highest), entry.rests)
        for index in range(len(entry.stages)):
            part = PipelineSet(
                table=table,
                num_stages=int(entry.stages[index]),
                pace=float(paces[index]),
                rest=float(rests[index]),
                bound=float(bounds[index]),
                replay_bound=float(replays[index]),
                prices=prices[index],
            )
            if np.isfinite(paces[index]):
                yield part
            elif table.max_layers < table.num_layers:
                self.search.close(part, part.bound)
            else:
                self.search.result.unfit += 1

    def bound(self, entry: PipelineSet, *, note: bool = True) -> Iterator[BoundedSet]:
        """Bound a subproblem by its Lagrangian; close it if that is enough (and if `note` is set, take note of it)."""
        cutoff, highest = self.search.cutoff, self._highest(entry.table.family, entry.rest)
        sub = build_subproblem(self.space, entry.table, entry.num_stages, min(highest, float(NEVER)))
        known = Bounder(sub, entry.prices).bound(cutoff, highest, entry.pace)
        if known.start is not None:
            self.search.meet(sub, known.start)
        replayed = max(entry.replay_bound, entry.num_passes * min(known.bottleneck, highest))
        if max(known.value, entry.bound) < cutoff:
            yield BoundedSet(sub=sub, known=known, replay_bound=replayed, proved=entry.bound)
        elif note:
            self.search.close(replace(entry, replay_bound=replayed), cutoff)

    def tighten(self, entry: BoundedSet, *, note: bool = True) -> Iterator[BoundedSet]:
        """Find a subproblem's smallest bottleneck exactly, and take its bottlenecks apart from there."""
        from planner.program.bottleneck import smallest_bottleneck

        known, cutoff, pace = entry.known, self.search.cutoff, entry.sub.num_passes - 1
        rest = known.value - pace * known.tau
        highest = min(known.highest, (cutoff - rest) / pace) if pace else known.highest
        low, start = smallest_bottleneck(entry.sub, known.bottleneck, highest)
        if start is not None:
            self.search.meet(entry.sub, start)
        cutoff = self.search.cutoff
        tight = replace(known, value=cutoff, bottleneck=highest)
        if np.isfinite(low):
            tight = Bounder(entry.sub, known.prices).split(replace(known, highest=highest), cutoff, low)
            if tight.value < cutoff < np.inf:
                tight = self._counted(entry.sub, tight, cutoff)
        # Smaller ones that were closed hold plans, too, though none that the program's measure puts below the cutoff.
        replayed = max(entry.replay_bound, entry.sub.num_passes * min(low, highest))
        tight = replace(tight, start=start or known.start)
        tightened = replace(
            entry, known=tight, replay_bound=replayed, proved=max(entry.proved, known.value), exact=True
        )
        if tightened.bound < cutoff:
            yield tightened
        elif note:
            self.search.close(tightened, cutoff)

    def _counted(self, sub: Subproblem, known: Bound, cutoff: float) -> Bound:
        """Close what counting positions can close; the bottlenecks that are left start where it cannot."""
        from planner.program.counts import counted_bound

        bounder = Bounder(sub, known.prices)
        fits = known.slack <= cutoff - known.value
        times = np.unique(bounder.time[(bounder.time >= known.bottleneck) & (bounder.time <= known.highest)])
        left = []
        for piece in np.array_split(times, min(PIECES, len(times))):
            start, end = max(known.bottleneck, float(piece[0])), float(piece[-1])
            if counted_bound(sub, bounder.cost, fits, start, end, cutoff) < cutoff:
                left.append((start, end))
        if not left:
            return replace(known, value=cutoff)
        return replace(known, bottleneck=left[0][0], tau=max(known.tau, left[0][0]), highest=left[-1][1])

    def solve(self, entry: BoundedSet) -> Iterator[BoundedSet]:
        """Solve a subproblem by CP-SAT: to its optimum, or to a better bound where that takes too much work."""
        from planner.program.solve import solve

        search = self.search
        cutoff = search.cutoff if np.isfinite(search.cutoff) else float(slowest(entry.sub))
        limits = {"effort": entry.effort, "time_limit": search.seconds_left}
        solved = solve(entry.sub, entry.known, cutoff, search.gap, tick=search.tell, **limits)
        search.result.solved += 1
        if solved.assignment is not None:
            search.meet(entry.sub, solved.assignment, solved=True)
        if solved.complete or solved.bound >= search.cutoff:
            search.close(entry, max(solved.bound, entry.proved))
        else:
            yield replace(entry, proved=max(solved.bound, entry.proved), effort=4 * entry.effort)

    def _can_use_least(self, family: Family, stages: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for which numbers of stages the pipelines can take as many devices as every limit demands."""
        space, replicas = self.space, family.num_replicas
        widest = space.usage[:, list(family.restriction.choices)].max(axis=1)
        most = np.minimum(space.capacity // replicas, stages[:, None] * widest)
        enough: NDArray[np.bool_] = (most >= -(-space.least // replicas)).all(axis=1)
        return enough

    def _highest(self, family: Family, rest: float) -> float:
        """Return the slowest stage [ns] with which a plan can end below the cutoff, the rest being at least `rest`."""
        pace, cutoff = family.num_passes - 1, self.search.cutoff
        return (cutoff - rest) / pace if pace and np.isfinite(cutoff) else float(NEVER)

    def _edges(self, family: Family) -> float:
        """Return the least time [ns] that embedding and head add to the rest of a step, in one pass of each stage."""
        indices = family.restriction.choices
        costs = [self.space.costs(index, family.micro_batch, pipelined=family.pipelined) for index in indices]
        ends = (
            [c.embedding.forward + c.embedding.backward for c in costs],
            [c.head.forward + c.head.backward for c in costs],
        )
        return float(sum(min(end) for end in ends)) / NANOSECOND / family.schedule.virtual_stages

    def _positions_held(self, table: Table, stages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many positions hold how many micro-batches; families with the same M share the answer."""
        family = table.family
        key = (family.schedule, family.num_microbatches, len(table.holdings), tuple(stages.tolist()))
        if key not in self._held:
            self._held[key] = positions_held(family, stages, table.holdings)
        return self._held[key]
