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

from planner.candidates import Space
from planner.domain.progress import Reporter, Standing
from planner.program.bounds import ROUNDING
from planner.program.evaluation import evaluate
from planner.program.improve import improve
from planner.program.refine import Refiner
from planner.program.sets import BoundedSet, FamilySet, OpenSet, PipelineSet
from planner.program.subproblem import Assignment, Subproblem, is_allowed
from planner.units import NANOSECOND

PRICED = 96
"""Families that are priced before the search proper, for a good first plan."""
IMPROVED, PROMISING = 48, 1.1
"""Subproblems in which a plan is improved by small changes, and how near to the best one [-] it must be for that."""
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
            family.schedule.virtual_stages,
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
    replay_bound: float = np.inf
    """[ns] below which no plan's replayed step lies."""
    subproblems: int = 0
    solved: int = 0
    """Times that CP-SAT was asked for a subproblem's optimum."""
    open: int = 0
    """Subproblems that were neither solved nor closed: their bounds alone were enough, or the search was cut short."""
    unfit: int = 0
    """Subproblems that no recompute makes fit."""
    stopped: str = ""
    """``time_limit`` or ``interrupted`` if the search was cut short."""
    seconds: float = 0.0


class Search:
    """One search of one space; the `Refiner` knows how a set is refined, the search when and until when."""

    def __init__(self, space: Space, gap: float, time_limit: float = 0.0, reporter: Reporter | None = None) -> None:
        """Prepare to search `space` until the best plan is proved to be within `gap` of the optimum."""
        self.gap = gap
        self.reporter = reporter or Reporter()
        self.result = Result()
        self.best = np.inf
        """[ns] the best objective so far."""
        self._refiner = Refiner(space, self)
        self._started = time.monotonic()
        self._deadline = self._started + time_limit if time_limit > 0 else np.inf
        self._queue: list[tuple[float, int, OpenSet]] = []
        self._sequence = count()
        self._improved: set[tuple[object, int]] = set()

    @property
    def cutoff(self) -> float:
        """[ns] a set of plans whose bound reaches this is of no interest."""
        return min(self.best * (1 - self.gap), self.best - 1) if np.isfinite(self.best) else self.best

    @property
    def seconds_left(self) -> float:
        """[s] until the time limit, never quite none; zero without a limit."""
        return max(0.01, self._deadline - time.monotonic()) if np.isfinite(self._deadline) else 0.0

    def run(self) -> Result:
        """Search until proved, out of time or interrupted."""
        everything_open = False
        try:
            self._queue = [(entry.bound, next(self._sequence), entry) for entry in self._opened()]
            heapq.heapify(self._queue)
            everything_open = True
            self._refine()
        except KeyboardInterrupt:
            self.result.stopped = "interrupted"
        if not everything_open:
            self.result.lower_bound = self.result.replay_bound = 0.0
        for bound, _, entry in self._queue:
            self.close(entry, bound)
            self.result.open += len(entry.stages) if isinstance(entry, FamilySet) else 1
        self.result.lower_bound = min(self.result.lower_bound, self.best)
        self.result.found.sort(key=lambda found: found.key)
        self.result.seconds = time.monotonic() - self._started
        return self.result

    def meet(self, sub: Subproblem, assignment: Assignment, *, solved: bool = False) -> None:
        """Take note of a plan, if it keeps every limit; the solver's (`solved`) always do."""
        if not solved and not is_allowed(sub, assignment):
            return
        objective = evaluate(sub, assignment)
        self._take(Found(sub=sub, assignment=assignment, objective=objective))
        key = (sub.family, sub.num_stages)
        if not solved and objective < PROMISING * self.best and key not in self._improved and self._left:
            self._improved.add(key)
            better = improve(sub, assignment)
            self._take(Found(sub=sub, assignment=better, objective=evaluate(sub, better)))

    @property
    def _left(self) -> int:
        return IMPROVED - len(self._improved)

    def _take(self, found: Found) -> None:
        self.result.found.append(found)
        self.best = min(self.best, found.objective)

    def tell(self) -> None:
        """Report how far the search has come."""
        standing = Standing(
            phase="first plans",
            best=float(self.best) * NANOSECOND,
            wanted=self.gap,
            ends_in=max(0.0, self._deadline - time.monotonic()),
        )
        if self._queue:
            bound = float(min(self._queue[0][0], self.best)) * NANOSECOND
            standing = replace(standing, phase="equal replicas", left=self.left, bound=bound)
        self.reporter.progress(standing)

    def left(self) -> int:
        """Return the number of subproblems that may still hold a plan of interest."""
        hopeful = (entry for bound, _, entry in self._queue if bound < self.cutoff)
        return sum(len(entry.stages) if isinstance(entry, FamilySet) else 1 for entry in hopeful)

    def close(self, entry: OpenSet, bound: float) -> None:
        """Drop a set: none of its plans lies below `bound` [ns]."""
        self.result.lower_bound = min(self.result.lower_bound, bound)
        replayed = entry.replay_bound * ROUNDING - self._refiner.rounding
        self.result.replay_bound = min(self.result.replay_bound, replayed)

    def _opened(self) -> list[OpenSet]:
        """Return sets that together hold all plans, having met good plans where balanced stages would be fastest.

        Without a good plan the search would open every set whose bound is loose. Pipelines with several chunks a stage
        come last: they hope for much and seldom fit.
        """
        families = sorted(
            self._refiner.families(), key=lambda entry: (entry.family.schedule.virtual_stages > 1, entry.hope)
        )
        opened = []
        for entry in families[:PRICED]:
            self.tell()
            opened.append(list(self._refiner.price(entry)))
        hopeful = [min(parts, key=lambda part: part.hope) for parts in opened if parts]
        for part in sorted(hopeful, key=lambda part: part.hope)[:DIVES]:
            if time.monotonic() > self._deadline:
                break
            self.tell()
            for bounded in self._refiner.bound(part, note=False):
                list(self._refiner.tighten(bounded, note=False))
        return [*(part for parts in opened for part in parts), *families[PRICED:]]

    def _refine(self) -> None:
        while self._queue and self._queue[0][0] < self.cutoff:
            if time.monotonic() > self._deadline:
                self.result.stopped = "time_limit"
                return
            entry = self._queue[0][2]
            self.tell()
            # An interrupt in here leaves the entry where it is: the bound stays proved.
            opened = list(self._children(entry))
            heapq.heappop(self._queue)
            for child in opened:
                heapq.heappush(self._queue, (child.bound, next(self._sequence), child))

    def _children(self, entry: OpenSet) -> Iterator[OpenSet]:
        if isinstance(entry, FamilySet):
            yield from self._refiner.price(entry)
        elif isinstance(entry, PipelineSet):
            yield from self._refiner.bound(entry)
        elif isinstance(entry, BoundedSet) and not entry.exact:
            yield from self._refiner.tighten(entry)
        else:
            yield from self._refiner.solve(entry)
