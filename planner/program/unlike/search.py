"""Best-first search over plans with several kinds of pipelines, with a bound below all of them.

A node holds all plans of some groups, a ZeRO stage, a range of the number of replicas and one of the longest exchange.
It is priced as if both were the best of their ranges, its shares are relaxed, and the templates that the shares use are
solved and made exact until nothing changes; then a range is taken apart.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from planner.candidates import NEVER, Family, Space
from planner.candidates.choices import allows
from planner.candidates.unlike import Kind, Meeting, UnlikeSpace
from planner.domain.progress import Reporter, Standing
from planner.program.unlike.nodes import Node
from planner.program.unlike.pricing import Priced, price
from planner.program.unlike.shares import Share, relaxed, share_out
from planner.program.unlike.templates import Maker, Range, Template, Templates
from planner.units import NANOSECOND

ROUNDS = 64
"""Times that a node's templates are made exact."""
FINE, SPREAD = 0.1, 0.25
"""[-] of the gap, to which a step is found, and to which layers are spread."""


@dataclass(frozen=True)
class UnlikeFound:
    """A plan: what each group does."""

    parts: tuple[tuple[Priced, Share], ...]
    objective: int
    """[ns] the passes of the slowest kind, and the longest exchange."""


@dataclass
class UnlikeResult:
    """What the search knows when it ends."""

    found: list[UnlikeFound] = field(default_factory=list)
    """Best first."""
    lower_bound: float = np.inf
    """[ns] below which no plan's objective lies."""
    replay_bound: float = np.inf
    """[ns] below which no plan's replay lies: every sample passes every layer on some device."""
    nodes: int = 0
    stopped: str = ""
    seconds: float = 0.0


class UnlikeSearch:
    """One search for a plan faster than one that is known."""

    def __init__(
        self, space: Space, gap: float, best: float, time_limit: float = 0.0, reporter: Reporter | None = None
    ) -> None:
        """Prepare to look for plans faster than `best` [ns] by more than the gap."""
        self._space = UnlikeSpace(space)
        self._maker = Maker(self._space)
        self._batch = space.job.global_batch
        self._gap, self._best = gap, best
        self._started = time.monotonic()
        self._deadline = self._started + time_limit if time_limit > 0 else np.inf
        self._reporter = reporter or Reporter()
        self._numbers = count()
        self._fastest: dict[tuple[str, int, int], float] = {}
        self._priced: dict[tuple[object, ...], Priced | None] = {}
        self.result = UnlikeResult()

    @property
    def cutoff(self) -> float:
        """[ns] a node whose bound reaches this is of no interest."""
        return min(self._best * (1 - self._gap), self._best - 1) if np.isfinite(self._best) else self._best

    def unsearched(self) -> UnlikeResult:
        """Return what is known without a search: bounds."""
        self.result.lower_bound = min((node.bound for node in self._opened()), default=np.inf)
        return self.result

    def run(self) -> UnlikeResult:
        """Search until nothing is left that may be faster."""
        queue = [(node.bound, next(self._numbers), node) for node in self._opened()]
        heapq.heapify(queue)
        try:
            while queue and queue[0][0] < self.cutoff:
                if time.monotonic() > self._deadline:
                    self.result.stopped = "time_limit"
                    break
                node = queue[0][2]
                self._tell(queue)
                children = list(self._refined(node))
                heapq.heappop(queue)
                for child in children:
                    heapq.heappush(queue, (child.bound, next(self._numbers), child))
        except KeyboardInterrupt:
            self.result.stopped = "interrupted"
        self.result.lower_bound = min([self.result.lower_bound, self._best, *(bound for bound, _, _ in queue)])
        self.result.found.sort(key=lambda found: found.objective)
        self.result.seconds = time.monotonic() - self._started
        return self.result

    def _tell(self, queue: list[tuple[float, int, Node]]) -> None:
        """Report how far the search has come."""
        self._reporter.progress(
            Standing(
                phase="unlike replicas",
                left=lambda: sum(bound < self.cutoff for bound, _, _ in queue),
                best=self._best * NANOSECOND,
                bound=min(queue[0][0], self._best) * NANOSECOND,
                wanted=self._gap,
                ends_in=max(0.0, self._deadline - time.monotonic()),
            )
        )

    def _opened(self) -> Iterator[Node]:
        """Yield nodes that together hold all plans: numbers of replicas within a factor of two.

        Few replicas share fewer adapters than many: as long as that is so, each number is a node.
        """
        space = self._space.space
        for meeting in self._space.meetings():
            self.result.replay_bound = min(self.result.replay_bound, self._fluid(meeting, self._batch))
            most = min(self._batch, sum(self._space.devices(group) for group in meeting.groups))
            low = len(meeting.groups)
            shared = max(space.cluster.group(group).devices_per_node for group in meeting.groups)
            while low <= most:
                end = low if low < shared else min(2 * low - 1, most)
                numbers = [n for n in range(low, end + 1) if allows(space.job.constraints, "dp", n)]
                if numbers:
                    within = Range(fewest=numbers[0], most=numbers[-1])
                    yield Node(meeting, within, self._fluid(meeting, numbers[-1]))
                low = end + 1

    def _fluid(self, meeting: Meeting, most: int) -> float:
        """Return a bound [ns] on the step, replayed or not, of `most` replicas at their best pace, without fill."""
        rates = [self._rate(meeting, group, most) for group in meeting.groups]
        return self._batch / sum(rates) if all(rates) else np.inf

    def _rate(self, meeting: Meeting, group: str, most: int) -> float:
        """Return the most samples per ns of a group with up to `most` replicas."""
        key = (group, meeting.zero_stage, most)
        if key not in self._fastest:
            kinds = self._space.kinds(meeting, group)
            self._fastest[key] = max((self._maker.rate(meeting, kind, most) for kind in kinds), default=0.0)
        return self._fastest[key]

    def _kind_rate(self, kind: Kind) -> float:
        """Return the most samples per ns of one device."""
        space = self._space.space
        body = space.costs(kind.choice, kind.micro_batch, pipelined=kind.pipelined).body
        seconds = float(body.forward + body.backward) * space.model.num_layers
        return kind.micro_batch / (seconds / NANOSECOND * space.choices[kind.choice].width)

    def _templates(self, node: Node, group: str) -> Templates:
        """Return the templates with which a plan below the cutoff may be had, all other groups being at their best."""
        meeting = node.meeting
        most = node.within.most
        others = sum(self._rate(meeting, other, most) for other in meeting.groups if other != group)
        needed = max(0.0, self._batch / self.cutoff - others) * (1 - 1e-9)
        devices = self._space.devices(group)
        kinds = [kind for kind in self._space.kinds(meeting, group) if devices * self._kind_rate(kind) >= needed]
        return self._maker.templates(meeting, kinds, node.within, needed)

    def _refined(self, node: Node) -> Iterator[Node]:
        """Yield the parts of a node that may hold a plan below the cutoff; close it if there are none."""
        self.result.nodes += 1
        groups: list[Templates] = []
        for group in node.meeting.groups:
            groups.append(self._templates(node, group))
            if not groups[-1].listed:
                break
        bound = np.inf
        syncs: list[tuple[float, float]] = []
        if all(group.listed for group in groups):
            bound = node.bound
            for _ in range(ROUNDS):
                bound = max(bound, self._relaxed(groups, bound, node))
                if bound >= self.cutoff:
                    break
                proved, shares = self._smallest(groups, bound, node)
                bound = max(bound, proved)
                if shares is None or bound >= self.cutoff:
                    break
                news, shortest, longest = self._made_exact(groups, shares, node)
                syncs.append((shortest, longest))
                if not news:
                    break
        parts = list(node.parts(bound, syncs)) if bound < self.cutoff else []
        if not parts:
            self.result.lower_bound = min(self.result.lower_bound, bound)
        yield from parts

    def _tolerance(self, limit: float) -> float:
        return max(0.5, FINE * self._gap * limit)

    def _relaxed(self, groups: list[Templates], bound: float, node: Node) -> float:
        """Return a bound [ns] by the relaxed shares, the cutoff if nothing below it is left."""
        low, high = bound, self.cutoff
        if not np.isfinite(high):
            high = 2 * bound
            while not relaxed(groups, high, self._batch, node.within.fewest, node.within.most) and high < NEVER:
                high *= 2
        if not relaxed(groups, high, self._batch, node.within.fewest, node.within.most):
            return self.cutoff
        while high - low > self._tolerance(high):
            middle = (low + high) / 2
            if relaxed(groups, middle, self._batch, node.within.fewest, node.within.most):
                high = middle
            else:
                low = middle
        return low

    def _smallest(self, groups: list[Templates], bound: float, node: Node) -> tuple[float, tuple[Share, ...] | None]:
        """Return a bound [ns] by whole shares, and shares whose step is near the smallest that is possible."""

        def admitted(chosen: Sequence[tuple[Template, int]]) -> bool:
            number = sum(replicas for _, replicas in chosen)
            return node.within.fewest <= number <= node.within.most and self._space.admits(
                number, [(one.kind.choice, replicas * one.num_stages) for one, replicas in chosen]
            )

        low, proved = bound, True
        high = self.cutoff if np.isfinite(self.cutoff) else 2 * bound
        found, exact = share_out(groups, high, self._batch, admitted, node.within.most)
        while found is None and not np.isfinite(self.cutoff) and high < NEVER:
            high *= 2
            found, exact = share_out(groups, high, self._batch, admitted, node.within.most)
        if found is None:
            return (self.cutoff if exact else bound), None
        while high - low > self._tolerance(high):
            middle = (low + high) / 2
            shares, exact = share_out(groups, middle, self._batch, admitted, node.within.most)
            if shares is not None:
                found, high = shares, middle
            else:
                low, proved = middle, proved and exact
        return (low if proved else bound), found

    def _price(self, family: Family, num_stages: int, sync_high: float) -> Priced | None:
        """Return a kind's pipeline with its layers spread, found once."""
        key = (family, num_stages, sync_high)
        if key not in self._priced:
            self._priced[key] = price(self._space, family, num_stages, sync_high, SPREAD * self._gap)
        return self._priced[key]

    def _made_exact(self, groups: list[Templates], shares: tuple[Share, ...], node: Node) -> tuple[bool, float, float]:
        """Take note of the plan, and solve what its shares use as the node prices it.

        Tell whether that was news, and how long the exchanges of the kinds take [ns] at least and at most.
        """
        replicas = sum(share.replicas for share in shares)
        parts: list[tuple[Priced, Share]] = []
        syncs: list[float] = []
        news, limit = False, node.within.sync_high
        for group, share in zip(groups, shares, strict=True):
            one, most = group.listed[share.template], share.most
            optimistic = self._space.family(node.meeting, one.kind, node.within.most, one.here, most)
            known = self._price(optimistic, one.num_stages, limit)
            syncs.append(0.0 if known is None else known.sync)
            if most not in group.exact.setdefault(share.template, {}):
                group.exact[share.template][most] = np.inf if known is None else known.bound
                news = True
            family = self._space.family(node.meeting, one.kind, replicas, share.replicas, most)
            actual = self._price(family, one.num_stages, limit)
            if actual is not None:
                parts.append((actual, share))
        if len(parts) == len(shares):
            passes, exchange = (max(getattr(part, name) for part, _ in parts) for name in ("passes", "sync"))
            self.result.found.append(UnlikeFound(tuple(parts), passes + exchange))
            self._best = min(self._best, float(passes + exchange))
        return news, min(syncs), max(syncs)
