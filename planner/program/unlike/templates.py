"""Templates: the pipelines that a group may have, with bounds on their passes for any number of micro-batches.

The passes of template r with m micro-batches take e_r(m) >= fill_r + (m - 1) pace_r, and with m > P stages no less than
fill_r + (m - 1) max(pace_r, around_r), since the cycle through all P stages takes P bottlenecks. Exact values found on
the way make that tighter: e_r is the smallest of linear functions of m, and therefore concave beyond P. So it lies
above the line from (1, fill_r) to (m*, e_r(m*)), and grows by no less than pace_r from there on. When the passes of all
pipelines have ended, gradients are exchanged: the step ends max_r e_r(m_r) + max_r y_r after it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates import NEVER
from planner.candidates.unlike import Kind, Meeting, UnlikeSpace
from planner.costs.hop import blocks
from planner.costs.stage import StageTerms, sync_time
from planner.program.rates import rate_pace
from planner.units import NANOSECOND

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
FEW, SINGLE = 4, 128
"""Replicas on a group up to which each number is priced by itself, in all and where the number of all is known."""
LONG = 1e9
"""[s] a backward pass behind which all that can be hidden is."""
SLACK = 1e-9
"""[-] keeps counts valid through the rounding of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of pipeline with its number of stages."""

    kind: Kind
    num_stages: int
    devices: int
    """Of one pipeline."""
    fewest: int
    most: int
    """Replicas of the kind, from the fewest to the most that the group holds."""
    here: int
    """Replicas as which they are priced."""


@dataclass
class Templates:
    """The templates of one group: arrays over (template,), times in [ns]."""

    listed: list[Template]
    fill: Floats
    pace: Floats
    around: Floats
    sync: Floats
    """Bounds on the exchange."""
    sync_low: float
    """[ns] that the exchange of all pipelines takes at least."""
    exact: dict[int, dict[int, float]] = field(default_factory=dict)
    """Template -> micro-batches -> bound on the passes that was found by solving it."""

    def __post_init__(self) -> None:
        """Gather what is asked of every template again and again."""
        self.samples = np.array([one.kind.micro_batch for one in self.listed], dtype=np.int64)
        self.stages = np.array([one.num_stages for one in self.listed], dtype=np.int64)
        self.fewest = np.array([one.fewest for one in self.listed], dtype=np.int64)
        self.most = np.array([one.most for one in self.listed], dtype=np.int64)

    def batches(self, limit: float) -> Counts:
        """Return (template,) the most micro-batches of a step within `limit` [ns]; 0 where there are fewer than P."""
        left = limit - np.maximum(self.sync, self.sync_low)
        room = left - self.fill
        quick = _count(room, self.pace)
        steady = _count(room, np.maximum(self.pace, self.around))
        most = np.maximum(np.minimum(quick, self.stages), steady)
        for index, known in self.exact.items():
            most[index] = self._refined(index, known, float(left[index]), int(most[index]))
        return np.where(most >= self.stages, most, 0)

    def managed(self, limit: float, most: int) -> Counts:
        """Return (template,) the most samples that up to `most` replicas manage within `limit` [ns]."""
        replicas = np.minimum(self.most, most)
        return np.where(self.fewest <= replicas, replicas * self.samples * self.batches(limit), 0)

    def _refined(self, index: int, known: dict[int, float], limit: float, most: int) -> int:
        """Return the most micro-batches of a template, of which some values are known, with passes within `limit`."""
        stages, fill, pace = int(self.stages[index]), float(self.fill[index]), float(self.pace[index])
        for count, passes in known.items():
            if passes <= limit:
                most = min(most, count + int((limit - passes) / pace * (1 + SLACK) + SLACK))
            elif count > stages + 1:
                slope = (passes - fill) / (count - 1)
                within = 1 + int((limit - fill) / slope * (1 + SLACK) + SLACK) if limit >= fill else 0
                most = min(most, max(stages, min(within, count - 1)))
            else:
                most = min(most, count - 1)
        return most


def _count(room: Floats, pace: Floats) -> Counts:
    with np.errstate(invalid="ignore"):
        return np.where(room >= 0, 1 + np.floor(room / np.maximum(pace, 1e-9) * (1 + SLACK) + SLACK), 0).astype(
            np.int64
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What plans have in common: bounds on their replicas, and on the longest exchange."""

    fewest: int
    most: int
    sync_low: float = 0.0
    """[ns]"""
    sync_high: float = np.inf
    """[ns]"""


class Maker:
    """Makes templates of one space; what does not depend on the range of plans is priced once."""

    def __init__(self, space: UnlikeSpace) -> None:
        """Price nothing yet."""
        self._space = space
        self._layers = space.space.model.num_layers
        self._counts: dict[Kind, tuple[Counts, Counts]] = {}
        self._passes: dict[tuple[Kind, int, int], tuple[Floats, Floats, float]] = {}
        self._terms: dict[tuple[Kind, int, int], StageTerms] = {}
        self._synced: dict[tuple[Meeting, Kind, int, int, float], Floats] = {}
        self._exchanges: dict[tuple[Meeting, int, bool, int], dict[str, Any]] = {}

    def templates(self, meeting: Meeting, kinds: Sequence[Kind], within: Range, needed: float) -> Templates:
        """Return the templates of a group's kinds in plans of a range, priced at the best number of replicas.

        More replicas shard the optimizer more finely, so that memory is that of the most. Templates that together
        manage less than `needed` [samples/ns] are left out.
        """
        found: list[tuple[Template, float, float, float, float]] = []
        for kind in kinds:
            if kind.micro_batch + within.fewest - 1 <= self._space.space.job.global_batch:
                found += list(self._bounded(meeting, kind, within, needed))
        fill, pace, around, sync = (np.array([row[at] for row in found], dtype=float) for at in (1, 2, 3, 4))
        return Templates([row[0] for row in found], fill, pace, around, sync, within.sync_low)

    def rate(self, meeting: Meeting, kind: Kind, most: int) -> float:
        """Return the most samples per ns of up to `most` pipelines of a kind, sharded as finely as may be."""
        counts, held = self._counted(kind)
        if not len(counts):
            return 0.0
        _, paces, _ = self._priced(meeting, kind, counts, self._space.space.job.global_batch)
        return float((np.minimum(held, most) * kind.micro_batch / paces).max())

    def _bounded(
        self, meeting: Meeting, kind: Kind, within: Range, needed: float
    ) -> Iterator[tuple[Template, float, float, float, float]]:
        """Yield each template of a kind that can hold the layers, with its fill, pace, cycle and exchange [ns]."""
        counts, held = self._counted(kind)
        if not len(counts):
            return
        passes, paces, backward = self._priced(meeting, kind, counts, within.most)
        width, samples = self._space.space.choices[kind.choice].width, kind.micro_batch
        most = np.minimum(within.most, held)
        largest_stages, syncs = -(-self._layers // counts), dict[int, Floats]()
        for index in np.flatnonzero((paces < NEVER) & (most * samples >= needed * paces)).tolist():
            stages, passed, pace = int(counts[index]), float(passes[index]), float(paces[index])
            for fewest, largest, here in _numbers(int(most[index]), alone=within.fewest == within.most):
                if largest * samples < needed * pace:
                    continue
                if here not in syncs:
                    syncs[here] = self._syncs(meeting, kind, within.most, here, largest_stages, backward)
                exchange = float(syncs[here][index]) - self._unsure(kind, int(largest_stages[index]), fewest, largest)
                if exchange <= within.sync_high:
                    one = Template(
                        kind=kind, num_stages=stages, devices=stages * width, fewest=fewest, most=largest, here=here
                    )
                    yield one, passed, pace, passed / stages if stages > 1 else 0.0, exchange

    def _unsure(self, kind: Kind, layers: int, fewest: int, most: int) -> float:
        """Return [ns] by which latencies, which grow with log2 n, may be less than at either end of `_numbers`."""
        latency = self._space.space.choices[kind.choice].group.inter_node.latency
        return 2 * layers * latency / NANOSECOND * float(np.log2(most / fewest))

    def _counted(self, kind: Kind) -> tuple[Counts, Counts]:
        """Return the numbers of stages of a kind, and how many pipelines of each the group holds."""
        if kind not in self._counts:
            pairs = [(stages, self._space.most_replicas(kind, stages)) for stages in self._space.stage_counts(kind)]
            listed = np.array([pair for pair in pairs if pair[1] > 0], dtype=np.int64).reshape(-1, 2)
            self._counts[kind] = listed[:, 0], listed[:, 1]
        return self._counts[kind]

    def _priced(self, meeting: Meeting, kind: Kind, counts: Counts, most: int) -> tuple[Floats, Floats, float]:
        """Return what `_passes` does, found once: where nothing is sharded, the number of replicas does not matter."""
        key = (kind, meeting.zero_stage, most if meeting.zero_stage else min(most, self._contending(kind)))
        if key not in self._passes:
            self._passes[key] = _passes(self._space, meeting, kind, counts, most)
        return self._passes[key]

    def _contending(self, kind: Kind) -> int:
        """Return the replicas from which on more of them do not share the adapters of a node."""
        choice = self._space.space.choices[kind.choice]
        return choice.group.devices_per_node // choice.block

    def _syncs(self, meeting: Meeting, kind: Kind, replicas: int, here: int, layers: Counts, backward: float) -> Floats:
        """Return bounds [ns] on the exchange of stages with `layers`, which may have no edge, and hide behind it."""
        key = (meeting, kind, replicas if meeting.zero_stage else 0, here, backward)
        if key not in self._synced:
            terms = replace(self._update(meeting, kind, replicas), **self._exchange(meeting, kind, here))
            self._synced[key] = np.ravel(sync_time(terms, layers, backward)) / NANOSECOND - 2
        return self._synced[key]

    def _exchange(self, meeting: Meeting, kind: Kind, here: int) -> dict[str, Any]:
        """Return the coefficients of the exchange with `here` replicas on the group, whatever their micro-batch."""
        key = (meeting, kind.choice, kind.pipelined, here)
        if key not in self._exchanges:
            terms = self._priced_terms(meeting, kind, here, here)
            self._exchanges[key] = {"exchange_layer": terms.exchange_layer, "exchange_edge": terms.exchange_edge}
        return self._exchanges[key]

    def _update(self, meeting: Meeting, kind: Kind, replicas: int) -> StageTerms:
        """Return the coefficients that do not depend on the exchange, the optimizer sharded over all `replicas`."""
        key = (kind, meeting.zero_stage, replicas if meeting.zero_stage else 0)
        if key not in self._terms:
            self._terms[key] = self._priced_terms(meeting, kind, replicas, 1)
        return self._terms[key]

    def _priced_terms(self, meeting: Meeting, kind: Kind, replicas: int, here: int) -> StageTerms:
        alone = not kind.pipelined
        family = self._space.family(meeting, kind, replicas, here, self._space.space.job.global_batch)
        return self._space.space.terms(family, "none", alone, alone)


def _numbers(most: int, *, alone: bool) -> list[tuple[int, int, int]]:
    """Return (fewest, most, here): numbers of replicas on a group that are priced as one, as if there were `here`.

    The exchange in the group's ring grows with 1 - 1/n, that with other groups shrinks with 1/n: together they are
    linear in 1/n, and shortest at one of the ends, but for latencies. Few are priced one by one; more are, where the
    number of all replicas is `alone`.
    """
    single = SINGLE if alone else FEW
    few = [(number, number, number) for number in range(1, min(most, single) + 1)]
    return few if most <= single else [*few, (single + 1, most, single + 1), (single + 1, most, most)]


def _passes(
    space: UnlikeSpace, meeting: Meeting, kind: Kind, counts: Counts, most: int
) -> tuple[Floats, Floats, float]:
    """Return bounds [ns] for each number of stages: on one micro-batch through all of them, and on the pace.

    And the largest backward pass [s] that may hide the exchange of the first stage.
    """
    layers = space.space.model.num_layers
    family = space.family(meeting, kind, most, 1, max(int(counts[-1]), space.space.job.global_batch))
    table = space.space.table(family, stage_counts=counts.tolist())
    if not kind.pipelined:
        only = table.prices(first=True, last=True)
        time = float(only.time[0, 0, layers - 1])
        return np.array([time]), np.array([time]), float(only.backward[0, 0, layers - 1]) * NANOSECOND
    hop = table.hops[0, 0, 0], table.hops[1, 0, 0]
    sends = min(hop) if blocks(family.schedule, space.space.framework) else 0
    middle = table.prices(first=False, last=False).time[:, 0, :] + sends
    many = np.arange(1, middle.shape[1] + 1)
    fits = middle < NEVER
    rates = np.where(fits, many / np.maximum(middle, 1), 0.0).max(axis=1)
    held = np.where(fits, many, 0).max(axis=1)
    costs = space.space.costs(kind.choice, kind.micro_batch, pipelined=True)
    edges = sum(float(end.forward + end.backward) for end in (costs.embedding, costs.head)) / NANOSECOND
    fastest = float(np.where(fits, (middle - sends) / many, np.inf).min())
    rows = counts - 1
    possible = np.cumsum(held)[rows] >= layers
    full = -(-layers // counts) - 1
    fullest = middle.min(axis=0)[full]
    paces = np.maximum(rate_pace(layers, np.cumsum(rates)[rows]), np.maximum(fullest, max(hop)))
    passes = np.where(possible, layers * fastest + edges + rows * sum(hop), NEVER)
    return passes, np.where(possible, paces, NEVER), LONG
