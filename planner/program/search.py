"""Best-first search over all subproblems, with a proof: nothing is dropped that its bound does not exclude.

Every entry of the queue stands for a set of plans and carries a bound that none of them beats. The entry with the
smallest bound is refined: a family into its numbers of stages, a subproblem into a tighter bound, then into its
optimum by CP-SAT. When the smallest bound is within the wanted gap of the best plan, the search is over, and that
bound is the certificate.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER, Family, Space, Table
from planner.domain.progress import Reporter
from planner.program.bounds import ROUNDING, Bound, Bounder
from planner.program.incumbent import uniform_starts
from planner.program.rates import best_rates, held_counts, table_bounds
from planner.program.subproblem import Assignment, Subproblem, build_subproblem, evaluate
from planner.units import NANOSECOND


PRICED = 96
"""Families that are priced before the search proper, for a good first plan."""
DIVES = 10
"""Subproblems that are followed to a plan before the search proper."""


@dataclass(frozen=True)
class Found:
    """A plan of the program: a subproblem's assignment and its objective."""

    sub: Subproblem
    assignment: Assignment
    objective: int
    """[ns]"""

    @property
    def key(self) -> tuple[object, ...]:
        """What the plan is, for telling plans apart and for a fixed order."""
        family = self.sub.family
        return (
            self.objective,
            self.sub.num_stages,
            family.schedule.name,
            family.zero_stage,
            family.num_replicas,
            family.micro_batch,
            family.restriction.choices,
            self.assignment.choices,
            self.assignment.layers,
        )


@dataclass
class Result:
    """What the search knows when it ends."""

    found: list[Found] = field(default_factory=list)
    """Plans met, best first."""
    lower_bound: float = np.inf
    """[ns] below which no plan's objective lies."""
    subproblems: int = 0
    pruned: int = 0
    solved: int = 0
    unfit: int = 0
    """Subproblems that no recompute makes fit."""
    replay_bound: float = np.inf
    """[ns] below which no plan's replayed step lies."""
    stopped: str = ""
    """``time_limit`` or ``interrupted`` if the search was cut short."""
    seconds: float = 0.0


@dataclass(frozen=True)
class _Open:
    """A set of plans that is not excluded yet: a family, one of its subproblems, or a bounded subproblem."""

    family: Family
    stages: NDArray[np.int64]
    bounds: NDArray[np.float64]
    paces: NDArray[np.float64]
    """[ns] bounds on tau."""
    rests: NDArray[np.float64]
    """[ns] bounds on the part of the step beside (M - 1) tau."""
    hopes: NDArray[np.float64]
    """[ns] what the step would take if the stages came out balanced."""
    table: Table | None = None
    sub: Subproblem | None = None
    bound: Bound | None = None
    exact: bool = False
    """Whether the bound holds the exact smallest bottleneck."""
    effort: float = 1.0
    """[-] work that CP-SAT may spend next, in its own deterministic measure."""


class Search:
    """One search of one space."""

    def __init__(self, space: Space, gap: float, time_limit: float = 0.0, reporter: Reporter | None = None) -> None:
        """Prepare to search `space` until the best plan is proved to be within `gap` of the optimum."""
        self.space, self.gap = space, gap
        self.reporter = reporter or Reporter()
        self.result = Result()
        self.best = np.inf
        """[ns] the best objective so far."""
        self._held: dict[tuple[object, ...], NDArray[np.int64]] = {}
        self._started = time.monotonic()
        self._deadline = self._started + time_limit if time_limit > 0 else np.inf
        self._queue: list[tuple[float, int, _Open]] = []
        self._sequence = count()
        self._proved = np.inf

    @property
    def cutoff(self) -> float:
        """[ns] a set of plans whose bound reaches this is of no interest."""
        best = self.best
        return best if not np.isfinite(best) else min(best * (1 - self.gap), best - 1)

    def run(self) -> Result:
        """Search until proved, out of time or interrupted."""
        try:
            for entry in self._dive(list(self._open_families())):
                self._push(entry)
            self._refine()
        except KeyboardInterrupt:
            self.result.stopped = "interrupted"
        open_bound = self._queue[0][0] if self._queue else np.inf
        self.result.lower_bound = min(self._proved, open_bound, self.best)
        for _, _, entry in self._queue:
            self._note_replay(entry, float(entry.paces.min()))
        self.result.pruned = len(self._queue)
        self.result.found.sort(key=lambda found: found.key)
        self.result.seconds = time.monotonic() - self._started
        return self.result

    def _refine(self) -> None:
        while self._queue and self._queue[0][0] < self.cutoff:
            if time.monotonic() > self._deadline:
                self.result.stopped = "time_limit"
                return
            bound, _, entry = self._queue[0]
            opened = list(self._children(entry, bound))
            heapq.heappop(self._queue)
            for child in opened:
                self._push(child)

    def _children(self, entry: _Open, bound: float) -> Iterator[_Open]:
        self.reporter.progress("search", len(self._queue), self.best * NANOSECOND, bound * NANOSECOND)
        if entry.table is None:
            yield from self._price(entry)
        elif entry.sub is None:
            yield from self._bound(entry, bound)
        elif not entry.exact:
            yield from self._tighten(entry)
        else:
            yield from self._solve(entry)

    def _dive(self, families: list[_Open]) -> list[_Open]:
        """Meet good plans early, where balanced stages would be fastest: (M + P - 1) tau. Return what is open.

        Without a good plan the search would open every set whose bound is loose.
        """
        families.sort(key=lambda entry: float(entry.hopes.min()))
        opened = [list(self._price(entry)) for entry in families[:PRICED]]
        hopeful = [min(parts, key=lambda part: float(part.hopes[0])) for parts in opened if parts]
        for part in sorted(hopeful, key=lambda part: float(part.hopes[0]))[:DIVES]:
            if np.isfinite(part.hopes[0]):
                for bounded in self._bound(part, 0.0):
                    list(self._tighten(bounded))
        return [part for parts in opened for part in parts] + families[PRICED:]

    def _push(self, entry: _Open) -> None:
        lowest = float(entry.bound.value if entry.bound else entry.bounds.min(initial=np.inf))
        if np.isfinite(lowest):
            heapq.heappush(self._queue, (lowest, next(self._sequence), entry))

    def _open_families(self) -> Iterator[_Open]:
        """Yield the families with the bounds that need no prices."""
        space, cache = self.space, {}
        for family in space.families:
            indices = list(family.restriction.choices)
            stages = np.array([p for p in space.stage_counts(family) if space.allows_stages(p)], dtype=np.int64)
            if family.restriction.even_layers:
                stages = stages[space.model.num_layers % stages == 0]
            if not len(stages):
                continue
            self.result.subproblems += len(stages)
            key = (family.restriction.choices, family.micro_batch, family.num_replicas, family.pipelined)
            if key not in cache:
                bodies = [space.costs(i, family.micro_batch).body for i in indices]
                layer = np.array([float(body.forward + body.backward) for body in bodies]) / NANOSECOND
                capacity = space.capacity // family.num_replicas
                rate = best_rates(1 / layer[None, :], stages[:, None], space.usage[:, indices], capacity)
                cache[key] = (space.model.num_layers / rate, space.model.num_layers * float(layer.min()))
            paces, rest = cache[key]
            yield _Open(
                family=family,
                stages=stages,
                bounds=(family.num_microbatches - 1) * paces + rest,
                paces=paces,
                rests=np.full(len(stages), rest),
                hopes=(family.num_microbatches + stages - 1) * paces,
            )

    def _price(self, entry: _Open) -> Iterator[_Open]:
        """Refine a family: price it, look for uniform plans, and open its subproblems."""
        space, family = self.space, entry.family
        table = space.table(family)
        capacity = space.capacity // family.num_replicas
        usage = space.usage[:, list(family.restriction.choices)]
        counts = self._held_counts(table, entry.stages)
        paces, rests = table_bounds(table, space.model.num_layers, counts, usage, capacity)
        possible = np.isfinite(paces)
        self.result.unfit += int((~possible).sum())
        bounds = np.where(possible, (family.num_microbatches - 1) * np.where(possible, paces, 0.0) + rests, np.inf)
        for start in uniform_starts(space, table, entry.stages[bounds < self.best]):
            self._meet(*start)
        for index in np.flatnonzero(possible).tolist():
            part = slice(index, index + 1)
            yield replace(
                entry,
                stages=entry.stages[part],
                paces=np.maximum(paces, entry.paces)[part],
                rests=rests[part],
                hopes=((family.num_microbatches + entry.stages - 1) * paces)[part],
                bounds=np.maximum(bounds[part], entry.bounds[part]),
                table=table,
            )

    def _held_counts(self, table: Table, stages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many positions hold how many micro-batches; families with the same M share the answer."""
        key = (table.family.schedule.name, table.family.num_microbatches, len(table.in_flights), tuple(stages.tolist()))
        if key not in self._held:
            self._held[key] = held_counts(table.family, stages, table.in_flights)
        return self._held[key]

    def _bound(self, entry: _Open, known: float) -> Iterator[_Open]:
        """Refine a subproblem: bound it by its bottleneck and Lagrangian."""
        assert entry.table is not None
        cutoff = self.cutoff
        pace = entry.family.num_microbatches - 1
        # What is known bounds the rest as well: a slower bottleneck than this cannot end below the cutoff.
        highest = (cutoff - float(entry.rests[0])) / pace if pace and np.isfinite(cutoff) else np.inf
        sub = build_subproblem(self.space, entry.table, int(entry.stages[0]), min(highest, float(NEVER)))
        bound = Bounder(sub).bound(cutoff, highest, float(entry.paces[0]))
        if bound.start is not None:
            self._meet(sub, bound.start)
        if bound.value >= cutoff:
            self._close(entry, max(cutoff, known), bound.bottleneck)
            return
        yield replace(entry, sub=sub, bound=replace(bound, value=max(bound.value, known)))

    def _tighten(self, entry: _Open) -> Iterator[_Open]:
        """Refine a bounded subproblem: find its smallest bottleneck exactly."""
        from planner.program.bottleneck import smallest_bottleneck

        assert entry.sub is not None
        assert entry.bound is not None
        bound, cutoff, pace = entry.bound, self.cutoff, entry.family.num_microbatches - 1
        rest = bound.value - pace * bound.tau
        highest = min(bound.highest, (cutoff - rest) / pace) if pace else bound.highest
        low, start = smallest_bottleneck(entry.sub, bound.bottleneck, highest)
        if start is not None:
            self._meet(entry.sub, start)
        if not np.isfinite(low):
            self._close(entry, cutoff, highest)
            return
        tight = Bounder(entry.sub).split(replace(bound, highest=highest), self.cutoff, low)
        if tight.value >= self.cutoff:
            self._close(entry, self.cutoff, low)
            return
        value = max(tight.value, bound.value)
        yield replace(entry, exact=True, bound=replace(tight, value=value, start=start or bound.start))

    def _solve(self, entry: _Open) -> Iterator[_Open]:
        """Refine a subproblem by CP-SAT: to its optimum, or to a better bound where that takes more work than allowed."""
        from planner.program.solve import solve

        assert entry.sub is not None
        assert entry.bound is not None
        left = max(0.01, self._deadline - time.monotonic()) if np.isfinite(self._deadline) else 0.0
        solved = solve(entry.sub, entry.bound, self.cutoff, self.gap / 2, effort=entry.effort, time_limit=left)
        self.result.solved += 1
        if solved.assignment is not None:
            self._meet(entry.sub, solved.assignment)
        if solved.complete or solved.bound >= self.cutoff:
            self._close(entry, solved.bound, entry.bound.bottleneck)
        else:
            yield replace(entry, bound=replace(entry.bound, value=solved.bound), effort=4 * entry.effort)

    def _close(self, entry: _Open, bound: float, pace: float) -> None:
        """Drop a subproblem: no plan of it is below `bound` [ns], nor has a bottleneck below `pace` [ns]."""
        self._proved = min(self._proved, bound)
        self._note_replay(entry, pace)

    def _note_replay(self, entry: _Open, pace: float) -> None:
        """Note that no replay of a plan in `entry` is faster than M times its bottleneck, nor than one micro-batch."""
        least = max(entry.family.num_microbatches * pace, float(entry.rests.min()))
        self.result.replay_bound = min(self.result.replay_bound, least * ROUNDING - entry.family.num_microbatches)

    def _meet(self, sub: Subproblem, assignment: Assignment) -> None:
        found = Found(sub=sub, assignment=assignment, objective=evaluate(sub, assignment))
        self.result.found.append(found)
        self.best = min(self.best, found.objective)
