"""Every plan of a small problem, priced and compared without the program: the judge of `planner.program`.

Nothing here is shared with the program or its candidates but the formulas for the time and memory of one stage. Plans
are left out only where they do not fit, or where the docstring of `Exhaustive` says that another is at least as good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray
from walked import RATIOS, left_over, step_counts

from builders import Planning
from planner.costs.crossing import Beyond
from planner.costs.gathering import gathering_of
from planner.costs.hop import StageEnd, hop_time
from planner.costs.peaks import peak_memory
from planner.costs.stage import (
    LayerCosts,
    StageTerms,
    backward_time,
    forward_time,
    layer_costs,
    stage_terms,
    sync_time,
    weight_time,
)
from planner.domain.cluster import DeviceGroup
from planner.domain.plan import Plan, Stage, Strategy
from planner.schedules import SCHEDULES, Schedule, schedule

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
FORMULAS = ("1f1b", "gpipe", "interleaved")
"""Schedules with formulas of their own."""


@dataclass(frozen=True)
class Setting:
    """What all stages of a plan share."""

    schedule: str
    zero: int
    replicas: int
    micro_batch: int
    microbatches: int
    stages: int
    recompute: str
    """``any``, or the policy of every layer."""
    chunks: int = 1
    """Of every stage (v)."""
    beyond: Beyond | None = None
    """Replicas of other kinds, which count among the replicas."""

    @property
    def passes(self) -> int:
        """Of a stage each way in a step."""
        return self.microbatches * self.chunks

    @property
    def listed(self) -> Schedule:
        """With its chunks."""
        return schedule(self.schedule, self.chunks if self.chunks > 1 else 0)

    @property
    def walked(self) -> bool:
        """Whether the schedule is given by its passes, and so judged by its critical paths."""
        return self.schedule not in FORMULAS

    @property
    def parts(self) -> int:
        """Virtual stages of a rank, those that it runs from the other end included."""
        return self.chunks * self.listed.directions

    @property
    def turns(self) -> bool:
        """Whether the last stage sends to the first one."""
        return self.chunks > 1 and self.listed.rank(self.stages, 0, self.stages) == 0

    @property
    def blocking(self) -> bool:
        """Whether a stage waits for what it sends."""
        return self.schedule == "1f1b"

    def held(self, position: int) -> int:
        """Return the passes that a stage holds: 1f1b P - s, gpipe all, with chunks 2(P - s - 1) + (v - 1) P + 1."""
        if self.schedule == "gpipe":
            return self.microbatches
        if self.schedule == "1f1b":
            return min(self.microbatches, self.stages - position)
        if self.walked:
            return self.listed.in_flight(position, self.stages, self.microbatches)
        return min(self.passes, 2 * (self.stages - position - 1) + (self.chunks - 1) * self.stages + 1)


@dataclass(frozen=True)
class Option:
    """How one replica of a stage may be spread."""

    group: DeviceGroup
    tensor: int
    context: int = 1
    kind: str = "p2p"
    split: int = 1

    @property
    def block(self) -> int:
        """Devices of one copy of the stage."""
        return self.tensor * self.context

    @property
    def width(self) -> int:
        """Devices of the stage in one pipeline."""
        return self.split * self.block

    @property
    def strategy(self) -> Strategy:
        """The same as the planner writes it."""
        degrees = tuple((name, cut) for name, cut in (("tp", self.tensor), ("cp", self.context)) if cut > 1)
        return Strategy(degrees=degrees, sequence_parallel=self.tensor > 1, cp_comm_type=self.kind)


@dataclass(frozen=True)
class Variant:
    """A base policy and how many layers are recomputed, by index into the prices of a stage."""

    policy: str
    recomputed: int


@dataclass(frozen=True)
class Plans:
    """All plans of one setting that fit: arrays over (plan, position) in seconds, of one pass; layers of one chunk."""

    setting: Setting
    options: Counts
    layers: Counts
    variants: Counts
    forward: Floats
    backward: Floats
    sync: Floats
    ahead: Floats
    back: Floats
    weight: Floats
    """Of backward, what makes the gradients of weights."""
    syncs: Floats
    """All exchanges of a stage, where each virtual stage has its own; sync is then the longest."""
    around: Floats
    """(plan, way) from the last position to the first and back."""
    uneven: Floats
    """(plan, end) by how much the embedding (0) or head (1) lengthens its chunk beyond the mean of the stage."""

    @property
    def bottlenecks(self) -> Floats:
        """[s] tau of every plan."""
        return bottlenecks(self)

    @property
    def slowest_stages(self) -> Floats:
        """[s] the largest stage time of every plan, with what the stage waits for after sending."""
        slowest: Floats = _busy(self).max(axis=1)
        return slowest

    @property
    def objectives(self) -> Floats:
        """[s] the step as in the design: (M-1) tau + sum t + sum (x + y) + max_s (sync_s - sum_{j<s} (b_j + y_j)).

        With v chunks: v M - 1 passes, and for v - 1 rounds what the way round outlasts P passes.
        """
        setting = self.setting
        if setting.walked:
            return walked_objectives(self)
        fill = (self.forward + self.backward).sum(axis=1) + (self.ahead + self.back).sum(axis=1)
        last = self.sync[:, 0].copy()
        earlier = np.zeros(len(last))
        for position in range(1, setting.stages):
            earlier = earlier + self.backward[:, position - 1] + self.back[:, position - 1]
            last = np.maximum(last, self.sync[:, position] - earlier)
        total: Floats = (setting.passes - 1) * self.bottlenecks + fill + last
        if setting.chunks > 1:
            outlasted = np.maximum(0.0, fill + self.around.sum(axis=1) - setting.stages * self.bottlenecks)
            total = total + (setting.chunks - 1) * outlasted
        return total


def walked_objectives(plans: Plans) -> Floats:
    """Return [s] (v M - 1) tau, the most of tau and what each critical path has beside, and the last exchange."""
    setting, tau = plans.setting, bottlenecks(plans)
    kinds = {"forward": plans.forward, "input": plans.backward - plans.weight, "weight": plans.weight}
    hops = (plans.ahead + plans.back).sum(axis=1) / max(1, 2 * (setting.stages - 1))
    rest = tau
    for ratio in range(len(RATIOS)):
        counts = dict.fromkeys(("forward", "input", "weight"), setting.passes) | {"joints": 0, "wraps": 0}
        if setting.listed.flushes:
            counts = step_counts(setting.listed, setting.stages, setting.microbatches, ratio)
        beside = sum((counts[kind] - setting.passes + 1) * times.mean(axis=1) for kind, times in kinds.items())
        beside = beside + counts["joints"] * hops + counts["wraps"] * plans.around.mean(axis=1)
        rest = np.maximum(rest, beside)
    exposed = plans.sync
    if setting.listed.eager_sync:
        exposed = np.zeros_like(plans.sync)
        for position, stages in enumerate(left_over(setting.listed, setting.stages, setting.microbatches)):
            first, *_, last = sorted(stages, key=lambda counts: -sum(counts))
            own = np.stack([times[:, position] for times in kinds.values()], axis=1)
            early, late = (np.maximum(0.0, own @ np.array(counts)) for counts in (first, last))
            exposed[:, position] = np.maximum(plans.syncs[:, position] - early, plans.sync[:, position] - late)
    total: Floats = (setting.passes - 1) * tau + rest + np.maximum(0.0, exposed).max(axis=1)
    return total


def _busy(plans: Plans) -> Floats:
    """Return (plan, position) [s] of a pass each way, with the stage's own transfers where it waits for them."""
    time = plans.forward + plans.backward
    if not plans.setting.blocking:
        return time
    none = np.zeros((len(time), 1))
    busy: Floats = time + np.concatenate([plans.ahead, none], axis=1) + np.concatenate([none, plans.back], axis=1)
    return busy


def bottlenecks(plans: Plans) -> Floats:
    """Return [s] tau: gpipe paces both ways apart; 1f1b also waits for every cycle of s <= e with w_s < M."""
    setting, ahead, back, time = plans.setting, plans.ahead, plans.back, _busy(plans)
    if setting.blocking:
        ahead, back = 0 * ahead, 0 * back
    if setting.schedule in ("gpipe", "breadth-first"):
        forward, backward = plans.forward.max(axis=1), plans.backward.max(axis=1)
        if setting.stages > 1:
            forward, backward = np.maximum(forward, ahead.max(axis=1)), np.maximum(backward, back.max(axis=1))
        both: Floats = forward + backward
        return _walked(plans, both) if setting.walked else both
    tau = time.max(axis=1)
    if setting.walked:
        return _walked(plans, np.maximum.reduce([tau, *ahead.T, *back.T]))
    for start, end in combinations(range(setting.stages), 2):
        tau = np.maximum(tau, np.maximum(ahead[:, start], back[:, start])) if end == start + 1 else tau
        if setting.held(start) < setting.passes:
            inside = time[:, start : end + 1].sum(axis=1) + (ahead + back)[:, start:end].sum(axis=1)
            tau = np.maximum(tau, inside / (setting.held(start) - setting.held(end) + 1))
    return _chunked(plans, tau) if setting.chunks > 1 else tau


def _walked(plans: Plans, tau: Floats) -> Floats:
    """Return [s] tau: unlike chunks, and the micro-batches that may be under way at once."""
    setting = plans.setting
    if setting.turns:
        tau = np.maximum(_uneven_chunks(plans, tau), plans.around.max(axis=1))
    first = [one for one in setting.listed.passes(setting.stages, setting.microbatches)[0] if one[2:4] == (0, 0)]
    level = most = 0
    for one in first:
        level += {"F": 1, "W": 0}.get(one.kind, -1)
        most = max(most, level)
    if most * setting.listed.directions < setting.microbatches or not setting.listed.flushes:
        late = plans.weight if all(one.kind != "B" for one in first) else 0.0
        once = (plans.forward + plans.backward - late).sum(axis=1) + (plans.ahead + plans.back).sum(axis=1)
        way = setting.chunks * once + (setting.chunks - 1) * plans.around.sum(axis=1) * setting.turns
        tau = np.maximum(tau, way / (most * setting.parts))
    return tau


def _chunked(plans: Plans, tau: Floats) -> Floats:
    """Return [s] tau where stages have several chunks: unlike chunks, and the way round all stages."""
    setting, time = plans.setting, plans.forward + plans.backward
    tau = np.maximum(_uneven_chunks(plans, tau), plans.around.max(axis=1))
    if setting.held(0) < setting.passes:
        turn = time.sum(axis=1) + (plans.ahead + plans.back).sum(axis=1) + plans.around.sum(axis=1)
        tau = np.maximum(tau, turn / (2 * setting.stages))
    return tau


def _uneven_chunks(plans: Plans, tau: Floats) -> Floats:
    """Return [s] tau where one chunk holds embedding or head."""
    setting, time = plans.setting, plans.forward + plans.backward
    for edge, heavy in enumerate((0, setting.stages - 1)):
        for other in set(range(setting.stages)) - {heavy}:
            longest = time[:, heavy] + plans.uneven[:, edge]
            tau = np.maximum(tau, (longest + (setting.chunks - 1) * time[:, other]) / setting.chunks)
    return tau


class Exhaustive:
    """All plans of a problem.

    Without `thorough`, plans are left out that cannot be better than one that stays: ZeRO stages are the same where
    there is one copy of every weight, and of the recompute of a stage the one with the shortest backward pass is best:
    it shortens the fill by as much as it may lengthen the end.
    """

    def __init__(self, asked: Planning, *, thorough: bool = False) -> None:
        """Find the options and settings that the job admits."""
        self.asked, self.thorough = asked, thorough
        self.options = tuple(self._options())
        self._layer_costs: dict[tuple[int, int], LayerCosts] = {}
        self._stage: dict[tuple[object, ...], tuple[Floats, ...]] = {}
        longest = asked.model.num_layers
        self.variants = tuple(Variant(policy, k) for policy in ("none", "selective") for k in range(longest + 1))

    @property
    def optimum(self) -> float:
        """[s] the smallest objective, infinite if nothing fits."""
        return min((float(plans.objectives.min()) for plans in self.all_plans()), default=np.inf)

    def all_plans(self) -> Iterator[Plans]:
        """Yield the plans of every setting that has any."""
        for setting in self.settings():
            plans = self.plans(setting)
            if len(plans.layers):
                yield plans

    def _allowed(self, subject: str, value: int) -> bool:
        for constraint in self.asked.job.constraints:
            if constraint.subject == subject:
                limit = int(constraint.value)
                holds = {
                    "=": value == limit,
                    "!=": value != limit,
                    "<=": value <= limit,
                    ">=": value >= limit,
                }
                if not holds[constraint.operator]:
                    return False
        return True

    @property
    def unequal(self) -> bool:
        """Whether replicas may have unlike shares of the batch."""
        asked = self.asked
        able = asked.target is None or asked.target.can.uneven_replicas
        return able and not any(c.subject == "replicas" and c.value == "equal" for c in asked.job.constraints)

    @property
    def splitting(self) -> bool:
        """Whether stages may divide micro-batches unlike ways."""
        asked = self.asked
        able = asked.target is None or asked.target.can.uneven_data_parallel
        return able and not any(c.subject == "replicas" and c.value == "equal" for c in asked.job.constraints)

    def _options(self) -> Iterator[Option]:
        asked = self.asked
        unused = {c.subject.removeprefix("group ") for c in asked.job.constraints if c.value == "unused"}
        counts = [count for layer in (asked.model.body,) for _, count in layer.limits()]
        splits = (1, 2, 4, 8) if self.splitting and len(asked.cluster.groups) > 1 else (1,)
        for group in asked.cluster.groups:
            if group.name in unused:
                continue
            for tensor in range(1, group.devices_per_node + 1):
                divides = all(count % tensor == 0 for count in [*counts, asked.job.sequence])
                if divides and self._allowed("tp", tensor):
                    for option in self._context_options(group, tensor):
                        fitting = (split for split in splits if split * option.block <= group.num_devices)
                        yield from (replace(option, split=split) for split in fitting)

    def _context_options(self, group: DeviceGroup, tensor: int) -> Iterator[Option]:
        """Yield the context degrees beside a tensor degree: those of short sequences only where they are asked for."""
        job, heads = self.asked.job, [count for what, count in self.asked.model.body.limits() if "heads" in what]
        asked = any(c.subject == "cp" for c in job.constraints)
        for context in range(1, group.devices_per_node // tensor + 1 if asked else 2):
            if not self._allowed("cp", context) or job.sequence % (2 * context * tensor if context > 1 else 1):
                continue
            yield Option(group, tensor, context)
            if context > 1 and all(count % (tensor * context) == 0 for count in heads):
                yield Option(group, tensor, context, "a2a")

    def settings(self) -> Iterator[Setting]:
        """Yield everything that all stages share, as the job and the target admit it."""
        if not self.options:
            return
        asked, can = self.asked, self.asked.target.can if self.asked.target else None
        most = min(asked.model.num_layers, asked.cluster.num_devices)
        schedules = list(self._schedules())
        recomputes = self._recomputes()
        for replicas, samples, count, left in self._shares():
            for stages in (p for p in range(1, most + 1) if self._allowed("pp", p)):
                zeros = [zero for zero in range(4) if self._allowed("zero", zero)]
                profile = can or asked.framework.can
                if can is not None or not any(c.subject == "zero" for c in asked.job.constraints):
                    able = profile.zero_stages if stages == 1 else profile.zero_stages_pipeline
                    zeros = [zero for zero in zeros if zero in able]
                cut = (option for option in self.options if not samples % option.split)
                alone = replicas == 1 and all(option.context * option.split == 1 for option in cut)
                for (name, chunks), zero, recompute in product(schedules, zeros, recomputes):
                    setting = Setting(name, zero, replicas, samples, count, stages, recompute, chunks)
                    if alone and setting.listed.directions == 1 and zero != zeros[0] and not self.thorough:
                        continue
                    if setting.walked:
                        possible = (
                            not setting.listed.blocker(stages, count) and stages * chunks <= asked.model.num_layers
                        )
                        possible = possible and (setting.parts == 1 or stages > 1)
                        possible = possible and not (left and (setting.parts > 1 or setting.listed.updates_each))
                    else:
                        possible = chunks == 1 or (
                            stages > 1
                            and not left
                            and count % stages == 0
                            and stages * chunks <= asked.model.num_layers
                        )
                    if possible:
                        yield setting

    def _schedules(self) -> Iterator[tuple[str, int]]:
        """Yield schedules with chunks: of those given by their passes the framework's own, or those asked for."""
        profile = self.asked.target or self.asked.framework
        asked = [c for c in self.asked.job.constraints if c.subject == "schedule"]
        named = {c.value for c in asked if c.operator == "="}
        unwanted = {c.value for c in asked if c.operator == "!="}
        for listed in SCHEDULES:
            wanted = named <= ({listed.name} if listed.changes_semantics else {listed.name, "any"})
            known = listed.name in FORMULAS or profile.name in dict(listed.runs_as)
            if listed.name in unwanted or not wanted or not (named or (known and not listed.changes_semantics)):
                continue
            if self.asked.target is not None and listed.name not in profile.can.schedules:
                continue
            counts = self._chunk_counts() if listed.with_chunks else [listed.virtual_stages]
            yield from ((listed.name, v) for v in counts if self._allowed("vpp", v) and self._whole(v))

    def _whole(self, chunks: int) -> bool:
        return self.asked.model.num_layers % chunks == 0

    def _shares(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield replicas, samples of a micro-batch, micro-batches of a replica, and micro-batches left over.

        Replicas divide the batch or the devices of a group; where some are left over, these replicas have one more.
        """
        batch = self.asked.job.global_batch
        sizes = {option.group.num_devices for option in self.options}
        for replicas, samples in product(range(1, batch + 1), range(1, batch + 1)):
            if not self._allowed("dp", replicas) or not self._allowed("micro_batch", samples):
                continue
            owned = self.unequal and any(size % replicas == 0 for size in sizes)
            left = batch // samples % replicas
            if (batch % replicas and not owned) or (left and not self.unequal):
                continue
            if batch % samples == 0 and batch // samples >= replicas:
                yield replicas, samples, -(-batch // samples // replicas), left

    def _chunk_counts(self) -> list[int]:
        """Return all numbers of chunks that the layers allow if a constraint names some, else only the fewest.

        Of the few layers of these problems no larger number is searched unasked.
        """
        written = [c for c in self.asked.job.constraints if c.subject == "vpp"]
        named = any((c.operator, c.value) not in {("=", "1"), ("<=", "1"), (">=", "1")} for c in written)
        total = self.asked.model.num_layers
        counts = [v for v in range(2, total) if total % v == 0]
        return counts if named else counts[:1]

    def _recomputes(self) -> list[str]:
        """Return ``any``, or what the job names or the target carries: uniform policies, or any number in full."""
        written = [c for c in self.asked.job.constraints if c.subject == "recompute"]
        policies = ["none", "selective", "full"]
        for constraint in written:
            policies = [p for p in policies if (p == constraint.value) == (constraint.operator == "=")]
        can = self.asked.target.can if self.asked.target else None
        if can and not written and can.uneven_recompute and can.partial_recompute:
            return ["none or full", "selective"]
        return policies if written or can else ["any"]

    def plans(self, setting: Setting) -> Plans:
        """Return all plans of a setting that fit."""
        sequences = np.array(self.sequences(setting.replicas, setting.stages), dtype=np.int64).reshape(
            -1, setting.stages
        )
        copies = setting.replicas * setting.listed.directions
        sequences = sequences[[self._sharded(setting.zero, copies, row) for row in sequences.tolist()]]
        sequences = sequences[[self._split_by_speed(setting, row) for row in sequences.tolist()]]
        splits = self._splits(setting.stages, setting.chunks)
        if setting.listed.directions > 1:
            sequences = sequences[(sequences == sequences[:, ::-1]).all(axis=1)]
            splits = splits[(splits == splits[:, ::-1]).all(axis=1)]
        priced = [self._prices(setting, position) for position in range(setting.stages)]
        hops = self._hops(setting)
        shape = (len(sequences), len(splits))
        rows = np.ones(shape, dtype=bool)
        for position, (forward, *_) in enumerate(priced):
            fits = np.isfinite(forward[0]) if not self.thorough else np.isfinite(forward).any(axis=0)
            rows &= fits[sequences[:, None, position], splits[None, :, position] - 1]
        which, split = rows.nonzero()
        options, layers = sequences[which], splits[split]
        variants = np.zeros_like(options)
        if self.thorough:
            options, layers, variants = self._with_variants(priced, options, layers)
        at = [(variants[:, s], options[:, s], layers[:, s] - 1) for s in range(setting.stages)]
        named = [np.stack([priced[s][part][at[s]] for s in range(setting.stages)], axis=1) for part in range(6)]
        ahead, back = (hops[way][options[:, :-1], options[:, 1:]] for way in (0, 1))
        return Plans(
            setting=setting,
            options=options,
            layers=layers,
            variants=named[3].astype(np.int64),
            forward=named[0],
            backward=named[1],
            sync=named[2],
            ahead=ahead,
            back=back,
            weight=named[4],
            syncs=named[5],
            around=np.stack([hops[0][options[:, -1], options[:, 0]], hops[1][options[:, -1], options[:, 0]]], axis=1),
            uneven=self._uneven(setting)[[0, 1], options[:, [0, -1]]],
        )

    def _uneven(self, setting: Setting) -> Floats:
        """Return (end, option) [s]: of the time of embedding or head what its chunk has more than the others' mean."""
        both = np.zeros((2, len(self.options)))
        for end, index in product((0, 1), range(len(self.options)) if setting.chunks > 1 else ()):
            if not self._priced(setting, index):
                continue
            terms = self._terms(setting, index, "none", end == 0, end == 1)
            edge = terms.forward_edge + terms.backward_edge
            both[end, index] = edge - edge / setting.chunks
        return both

    @staticmethod
    def _with_variants(
        priced: list[tuple[Floats, ...]], options: Counts, layers: Counts
    ) -> tuple[Counts, Counts, Counts]:
        """Repeat each plan for every recompute of every stage that fits."""
        chosen = np.zeros((len(options), 0), dtype=np.int64)
        for position, (forward, *_) in enumerate(priced):
            fits = np.isfinite(forward[:, options[:, position], layers[:, position] - 1])
            variant, row = fits.nonzero()
            options, layers, chosen = options[row], layers[row], np.hstack([chosen[row], variant[:, None]])
        return options, layers, chosen

    def _splits(self, stages: int, chunks: int) -> Counts:
        """Return (split, position): all ways of giving each stage's chunks at least one layer, as many in each."""
        total = self.asked.model.num_layers // chunks
        chosen = list(combinations(range(1, total), stages - 1))
        cuts = np.array(chosen, dtype=np.int64).reshape(len(chosen), stages - 1)
        edges = np.hstack([np.zeros((len(cuts), 1), np.int64), cuts, np.full((len(cuts), 1), total)])
        splits: Counts = np.diff(edges, axis=1)
        if self.asked.target is not None and not self.asked.target.can.uneven_layers:
            splits = splits[(splits == splits[:, :1]).all(axis=1)]
        return splits

    def sequences(self, replicas: int, stages: int) -> list[tuple[int, ...]]:
        """Return all choices of an option for each position that the devices admit."""
        found: list[tuple[int, ...]] = []
        most = min([self.asked.cluster.num_devices, *self._device_limits()])

        def grow(chosen: tuple[int, ...], used: int) -> None:
            if len(chosen) == stages:
                if self._carried(chosen):
                    found.append(chosen)
                return
            for index, option in enumerate(self.options):
                more = used + replicas * option.width
                if option.split > 1 and stages == 1:
                    continue  # more replicas do the same
                if more + replicas * (stages - len(chosen) - 1) > most:
                    continue
                if self._placed((*chosen, index), replicas):
                    grow((*chosen, index), more)

        grow((), 0)
        return found

    def _device_limits(self) -> list[int]:
        return [int(c.value) for c in self.asked.job.constraints if c.subject == "devices" and c.operator == "<="]

    def _placed(self, chosen: tuple[int, ...], replicas: int) -> bool:
        for group in self.asked.cluster.groups:
            used = [self.options[i] for i in chosen if self.options[i].group is group]
            blocks = [option.block for option in used for _ in range(option.split)] * replicas
            nodes = (group.devices_per_node,) * group.num_nodes
            if sum(blocks) > group.num_devices or not packs(tuple(sorted(blocks, reverse=True)), nodes):
                return False
        return True

    def _carried(self, chosen: tuple[int, ...]) -> bool:
        """Tell whether the target can run stages as unlike as these."""
        if self.asked.target is None:
            return True
        can, used = self.asked.target.can, [self.options[index] for index in chosen]
        same_group = len({option.group.name for option in used}) == 1
        tensors = {option.tensor for option in used}
        contexts = {(option.context, option.kind) for option in used}
        kinds = can.cp_comm_types if len(chosen) == 1 else can.cp_comm_types_pipeline
        return (
            (can.mixed_devices or same_group)
            and (can.uneven_tensor_parallel or len(tensors) == 1)
            and (can.tensor_parallel or tensors == {1})
            and len(contexts) == 1
            and all(context == 1 or kind in kinds for context, kind in contexts)
        )

    def _split_by_speed(self, setting: Setting, chosen: list[int]) -> bool:
        """Tell whether no stage is split, or all on the slower groups are, or all on the faster ones.

        They are split alike, into copies of one or two samples; and some stage is whole. Stages have one chunk.
        """
        used = [self.options[index] for index in chosen]
        split = {option.split for option in used}
        if split == {1}:
            return True
        if len(split) > 2 or min(split) > 1 or setting.micro_batch // max(split) > 2 or setting.chunks > 1:
            return False
        speeds = sorted({option.group.device.memory_bandwidth for option in self.options})
        ratios = [fast / slow for slow, fast in pairwise(speeds)]
        slowest = speeds[: 1 + ratios.index(max(ratios))] if ratios else []
        parted = [option.group.device.memory_bandwidth in slowest for option in used if option.split > 1]
        whole = [option.group.device.memory_bandwidth in slowest for option in used if option.split == 1]
        return len(set(parted)) == len(set(whole)) == 1 and parted[0] != whole[0]

    def _sharded(self, zero: int, copies: int, chosen: list[int]) -> bool:
        """Tell whether the target has the ZeRO stage where context ranks share weights, or tensor ranks cut them."""
        if self.asked.target is None:
            return True
        can, used = self.asked.target.can, [self.options[index] for index in chosen]
        context = any(option.context > 1 for option in used)
        shared = copies > 1 or context or any(option.split > 1 for option in used)
        tensor = shared and any(option.tensor > 1 for option in used)
        return (not context or zero in can.cp_zero_stages) and (not tensor or zero in can.tp_zero_stages)

    def _prices(self, setting: Setting, position: int) -> tuple[Floats, ...]:
        """Return forward, backward, sync [s] and the variant over (variant, option, n - 1); infinite without room."""
        held, chunks = setting.held(position), setting.chunks
        first, last = setting.listed.ends(position, setting.stages)
        key: tuple[object, ...] = (setting.zero, setting.replicas, setting.micro_batch, setting.recompute)
        key = (*key, held, chunks, first, last, setting.beyond, setting.listed.directions, setting.listed.eager_sync)
        key = (*key, _meet(setting), setting.stages > 1, gathering_of(setting.listed, setting.microbatches))
        shape = (position, setting.stages, setting.microbatches)
        listed = setting.listed
        stale = (listed.weight_versions(*shape), listed.predictions(*shape), listed.shares_weights(*shape))
        key = (*key, *stale, listed.updates_each, listed.flushes)
        if key not in self._stage:
            options = [self._option_prices(setting, position, index, first, last) for index in range(len(self.options))]
            self._stage[key] = tuple(np.stack(part, axis=1) for part in zip(*options, strict=True))
        return self._stage[key]

    def _priced(self, setting: Setting, index: int) -> bool:
        """Tell whether the option has a time: profiles do not have all."""
        option = self.options[index]
        profile = option.group.profile
        measured = {(row.tp, row.micro_batch) for row in profile.rows} if profile else set()
        samples, left = divmod(setting.micro_batch, option.split)
        return not left and (profile is None or (option.block, samples) in measured)

    def _option_prices(
        self, setting: Setting, position: int, index: int, first: bool, last: bool
    ) -> tuple[Floats, ...]:
        """Return the same of one option over (variant, n - 1), and the part for weights and all exchanges [s]."""
        asked, option, chunks = self.asked, self.options[index], setting.chunks
        ways, parts_, shape = setting.listed.directions, setting.parts, (position, setting.stages, setting.microbatches)
        held = setting.held(position)
        longest, most = asked.model.num_layers // chunks, asked.model.num_layers
        if not self._priced(setting, index):
            never = np.full((2 * (most + 1) if self.thorough else 1, longest), np.inf)
            return never, never, never, np.zeros_like(never), never, never
        layers, recomputed = chunks * np.arange(1, longest + 1)[None, :], np.arange(most + 1)[:, None]
        limit = option.group.device.memory * (1 - asked.job.headroom)
        parts = []
        for policy in ("none", "selective"):
            terms = self._terms(setting, index, policy, first, last)
            versions = setting.listed.weight_versions(*shape)
            kept = replace(
                terms, weights_layer=versions * terms.weights_layer, weights_edge=versions * terms.weights_edge
            )
            others = 0.0 if setting.listed.flushes else held - 1.0
            memory = peak_memory(kept, ways * layers, ways * recomputed, held / parts_, others)
            admitted = {
                "any": (recomputed <= layers) & (recomputed % chunks == 0),
                policy: recomputed == 0 * layers,
                "full": (recomputed == layers) & (policy == "none"),
                "none or full": (recomputed <= layers) & (recomputed % chunks == 0) & (policy == "none"),
            }.get(setting.recompute, np.zeros((most + 1, longest), dtype=bool))
            fits = admitted & (memory <= limit)
            backward = backward_time(terms, ways * layers, ways * recomputed)
            roles = [(first, last)]
            if setting.listed.eager_sync:
                roles = [(True, False)] * first + [(False, True)] * last
                roles += [(False, False)] * (parts_ - len(roles))
            size, replayed = ways * layers / len(roles), ways * recomputed / len(roles)
            owned = [self._terms(setting, index, policy, *role) for role in roles]
            exchanges = [sync_time(one, size, backward_time(one, size, replayed)) for one in owned]
            predictions = setting.listed.predictions(*shape)
            ahead = predictions * (layers * terms.predict_layer + terms.predict_edge)
            if predictions and not setting.listed.shares_weights(*shape):
                ahead = ahead + layers * terms.regather_layer + terms.regather_edge
            exchanges = [one + ahead for one in exchanges]
            if setting.listed.updates_each:
                backward, exchanges = backward + exchanges[0], [np.zeros_like(exchanges[0])]
            forward, weight = forward_time(terms, ways * layers), weight_time(terms, ways * layers)
            found = (forward / parts_, backward / parts_, np.maximum.reduce(exchanges), weight / parts_)
            found = (*found, np.add.reduce(exchanges))
            parts.append(tuple(np.where(fits, np.broadcast_to(part, fits.shape), np.inf) for part in found))
        forward, backward, sync, weight, syncs = (np.concatenate(both) for both in zip(*parts, strict=True))
        variant = np.broadcast_to(np.arange(len(forward), dtype=float)[:, None], forward.shape)
        if self.thorough:
            return forward, backward, sync, variant, weight, syncs
        best, column = backward.argmin(axis=0), np.arange(longest)
        return tuple(part[best, column][None] for part in (forward, backward, sync, variant, weight, syncs))

    def _terms(self, setting: Setting, index: int, policy: str, first: bool, last: bool) -> StageTerms:
        """Return the coefficients of a stage with an option."""
        asked, option = self.asked, self.options[index]
        pipelined = setting.stages > 1
        key = (index, setting.micro_batch, pipelined)
        if key not in self._layer_costs:
            self._layer_costs[key] = layer_costs(
                asked.model,
                asked.job,
                asked.framework,
                option.group,
                option.strategy,
                setting.micro_batch // option.split,
                pipelined=pipelined,
            )
        return stage_terms(
            self._layer_costs[key],
            asked.job,
            asked.framework,
            policy=policy,
            num_replicas=setting.listed.directions * setting.replicas * option.split,
            zero_stage=setting.zero,
            first=first,
            last=last,
            beyond=setting.beyond,
            ends_meet=_meet(setting),
            gathering=gathering_of(setting.listed, setting.microbatches),
        )

    def _hops(self, setting: Setting) -> Floats:
        """Return (2, option, option) [s]: over a joint from the row's option to the column's, forward and backward."""
        asked = self.asked
        key = ("hops", setting.replicas, setting.micro_batch)
        if key not in self._stage:
            ends = [
                StageEnd(
                    group=option.group,
                    strategy=option.strategy,
                    num_replicas=setting.replicas * option.split,
                    split=option.split,
                )
                for option in self.options
            ]
            rest = (asked.cluster, asked.model, asked.job, asked.framework, setting.micro_batch)
            ahead = np.array([[hop_time(here, there, *rest) for there in ends] for here in ends])
            self._stage[key] = (ahead.reshape(len(ends), len(ends)),)
        (ahead,) = self._stage[key]
        return np.stack([ahead, ahead.T])

    def plan(self, plans: Plans, row: int) -> Plan:
        """Return one of the plans as the planner writes it."""
        setting, stages = plans.setting, []
        runs: list[list[tuple[int, int]]] = [[] for _ in range(setting.stages)]
        first = 0
        for number in range(setting.stages * setting.chunks):
            rank = setting.listed.rank(number, 0, setting.stages)
            runs[rank].append((first, first + int(plans.layers[row][rank]) - 1))
            first += int(plans.layers[row][rank])
        for option, own, variant in zip(plans.options[row], runs, plans.variants[row], strict=True):
            chosen, how = self.options[option], self.variants[variant]
            stages.append(
                Stage(
                    group=chosen.group.name,
                    first_layer=own[0][0],
                    last_layer=own[0][1],
                    strategy=chosen.strategy,
                    recompute=how.policy,
                    num_recomputed=how.recomputed,
                    later_chunks=tuple(own[1:]),
                    split=chosen.split,
                )
            )
        return Plan(
            stages=tuple(stages),
            schedule=setting.schedule,
            num_replicas=setting.replicas,
            micro_batch=setting.micro_batch,
            num_microbatches=setting.microbatches,
            zero_stage=setting.zero,
            virtual_stages=setting.chunks,
            short_replicas=(-self.asked.job.global_batch // setting.micro_batch) % setting.replicas,
        )


def _meet(setting: Setting) -> bool:
    """Tell whether one rank of a pipeline of several has both embedding and head."""
    return setting.stages > 1 and all(setting.listed.ends(0, setting.stages))


@cache
def packs(blocks: tuple[int, ...], nodes: tuple[int, ...]) -> bool:
    """Tell whether blocks, largest first, go into nodes of these free sizes: every place of every block is tried."""
    if not blocks:
        return True
    block, rest = blocks[0], blocks[1:]
    tried = set()
    for index, free in enumerate(nodes):
        if free >= block and free not in tried:
            tried.add(free)
            if packs(rest, tuple(sorted((*nodes[:index], free - block, *nodes[index + 1 :]), reverse=True))):
                return True
    return False
