"""Families of subproblems: everything that must be fixed before stage costs are linear, but the number of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from planner.candidates.choices import Choice, allows
from planner.candidates.replicas import Shares, find_shares, split_patterns
from planner.candidates.schedules import find_schedules, useful_schedules
from planner.costs.crossing import Beyond
from planner.costs.layer import attention_kernel
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.parallelism import AXES, ZERO_STAGES, weight_copies
from planner.schedules import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """What a target demands of all stages together."""

    choices: tuple[int, ...]
    """Indices of the choices that may be mixed."""
    recompute: str = "any"
    """``any``, ``none or full`` of each layer, or the policy of every layer: ``none``, ``selective``, ``full``."""
    even_layers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A schedule, a ZeRO stage, a number of replicas, a micro-batch and a restriction.

    Where a stage has v chunks, each holds the same number of layers, and everything is counted in what one chunk does:
    v passes for a micro-batch, and slices of v layers, one in each chunk. With one chunk these are micro-batches and
    layers. A pipeline of P stages, M v passes and L / v slices is then priced and bounded like any other.
    """

    schedule: Schedule
    """With its number of chunks."""
    zero_stage: int
    num_replicas: int
    micro_batch: int
    num_microbatches: int
    short_replicas: int
    """Replicas that work on a micro-batch less; the others decide how long a step takes."""
    restriction: Restriction
    pipelined: bool
    """Whether the family holds pipelines of several stages, or a single stage."""
    beyond: Beyond | None = None
    """Replicas of other kinds on other groups, which count among the replicas; None if all replicas are alike."""

    @property
    def num_passes(self) -> int:
        """M v: passes of a stage each way in one step."""
        return self.num_microbatches * self.schedule.virtual_stages

    def num_slices(self, num_layers: int) -> int:
        """Return L / v."""
        return num_layers // self.schedule.virtual_stages


def find_families(
    choices: tuple[Choice, ...],
    job: Job,
    framework: Framework,
    target: Framework | None,
    num_devices: int,
    num_layers: int,
) -> Iterator[Family]:
    """Yield every family that the job, its constraints and the target allow.

    ZeRO stages are those that the target can run, or else those of the framework whose costs are used: another's would
    be priced wrongly. A constraint on them lifts that. Where no two ranks share weights, ZeRO stages are all the same.
    """
    schedules = list(find_schedules(job, framework, target, num_layers))
    shared_out = [
        (shares, tuple(split_patterns(choices, shares.micro_batch)))
        for shares in find_shares(choices, job, target, num_devices)
    ]
    useful = {
        (pipelined, number): useful_schedules(schedules, number, pipelined=pipelined)
        for pipelined, number in product((False, True), {shares.num_microbatches for shares, _ in shared_out})
    }
    for restriction, schedule in product(find_restrictions(choices, job, framework, target), schedules):
        for shares, patterns in shared_out:
            for pattern, zero, pipelined in product(patterns, ZERO_STAGES, (False, True)):
                possible = _possible(restriction, choices, pattern, shares)
                if not _mixes(possible, choices, pattern, pipelined=pipelined):
                    continue
                copies = shares.num_replicas * schedule.directions
                shared = copies > 1 or _share_weights(possible, choices)
                if not zero_allowed(zero.stage, job, framework, target, shared=shared, pipelined=pipelined):
                    continue
                if not _context_allowed(zero.stage, possible, choices, target, pipelined=pipelined):
                    continue
                if shared and not _tensor_allowed(zero.stage, possible, choices, target):
                    continue
                uneven = bool(shares.short_replicas) or len(_splits(possible, choices)) > 1
                if uneven and (schedule.parts > 1 or schedule.updates_each):
                    continue  # unlike shares of the batch are tried with one chunk a stage that meets once a step
                if schedule not in useful[pipelined, shares.num_microbatches]:
                    continue
                yield Family(
                    schedule=schedule,
                    zero_stage=zero.stage,
                    num_replicas=shares.num_replicas,
                    micro_batch=shares.micro_batch,
                    num_microbatches=shares.num_microbatches,
                    short_replicas=shares.short_replicas,
                    restriction=possible,
                    pipelined=pipelined,
                )


def _possible(
    restriction: Restriction, choices: tuple[Choice, ...], pattern: tuple[int, ...], shares: Shares
) -> Restriction:
    """Return the restriction to a pattern's choices that the group has devices for and that have a price."""

    def possible(choice: Choice) -> bool:
        enough = shares.num_replicas * choice.width <= choice.group.num_devices
        return enough and not choice.unpriced(shares.micro_batch)

    kept = set(pattern) & {index for index in restriction.choices if possible(choices[index])}
    return replace(restriction, choices=tuple(sorted(kept)))


def _mixes(restriction: Restriction, choices: tuple[Choice, ...], pattern: tuple[int, ...], *, pipelined: bool) -> bool:
    """Tell whether something is left to choose: split stages and whole ones, where the pattern has both."""
    left, wanted = _splits(restriction, choices), {choices[index].split for index in pattern}
    return bool(left) and left == wanted and (pipelined or wanted == {1})


def _splits(restriction: Restriction, choices: tuple[Choice, ...]) -> set[int]:
    return {choices[index].split for index in restriction.choices}


def zero_allowed(
    stage: int, job: Job, framework: Framework, target: Framework | None, *, shared: bool, pipelined: bool
) -> bool:
    """Tell whether the job, and the target or else the framework, admit a ZeRO stage."""
    can = (target or framework).can
    stages = list(can.zero_stages_pipeline if pipelined else can.zero_stages)
    if target is None and (not stages or any(c.subject == "zero" for c in job.constraints)):
        stages = [s.stage for s in ZERO_STAGES]
    stages = [s for s in stages if allows(job.constraints, "zero", s)]
    if stage not in stages:
        return False
    return shared or stage == min(stages)


def _share_weights(restriction: Restriction, choices: tuple[Choice, ...]) -> bool:
    """Tell whether ranks of one pipeline may hold the same weights, so that ZeRO has something to shard over."""
    return any(choices[index].split * weight_copies(AXES, choices[index].strategy) > 1 for index in restriction.choices)


def _context_allowed(
    stage: int, restriction: Restriction, choices: tuple[Choice, ...], target: Framework | None, *, pipelined: bool
) -> bool:
    """Tell whether the target can exchange context as the choices do, which are alike in that."""
    used = {_context(choices[index]) for index in restriction.choices}
    if target is None or all(degree == 1 for degree, _ in used):
        return True
    kinds = target.can.cp_comm_types_pipeline if pipelined else target.can.cp_comm_types
    return stage in target.can.cp_zero_stages and all(kind in kinds for _, kind in used)


def _tensor_allowed(
    stage: int, restriction: Restriction, choices: tuple[Choice, ...], target: Framework | None
) -> bool:
    """Tell whether the target has the ZeRO stage with the tensor degree of the choices, alike if it has not all."""
    cut = any(choices[index].strategy.degree("tp") > 1 for index in restriction.choices)
    return target is None or not cut or stage in target.can.tp_zero_stages


def _context(choice: Choice) -> tuple[int, str]:
    """Return the context degree, and how its ranks exchange."""
    return choice.strategy.degree("cp"), choice.strategy.cp_comm_type


_POLICIES = ("none", "none or full", "selective", "full")
"""In the order in which they are tried."""


def find_restrictions(
    choices: tuple[Choice, ...], job: Job, framework: Framework, target: Framework | None
) -> Iterator[Restriction]:
    """Yield the sets of choices that the target can mix, with the recompute that it can carry."""
    policies = ["any"]
    asked = [c for c in job.constraints if c.subject == "recompute"]
    if asked or target is not None:
        fused = all(attention_kernel(job, framework, choice.group).fused for choice in choices)
        mixed = target is not None and target.can.uneven_recompute and target.can.partial_recompute and not asked
        least = ("none or full",) if mixed else ("none", "full")
        useful = least if fused and not asked else ("selective", *least)
        policies = [policy for policy in sorted(useful, key=_POLICIES.index) if allows(asked, "recompute", policy)]
    sets = [tuple(range(len(choices)))]
    if target is not None and not target.can.tensor_parallel:
        sets = [tuple(i for i in sets[0] if choices[i].strategy.degree("tp") == 1)]
    if target is not None:
        kinds = target.can.cp_comm_types
        sets = [tuple(i for i in sets[0] if _context(choices[i])[0] == 1 or _context(choices[i])[1] in kinds)]
        sets = _sorted_out(sets, lambda index: _context(choices[index]))
    if target is not None and not target.can.several_vendors:
        sets = _sorted_out(sets, lambda index: choices[index].group.device.vendor)
    if target is not None and not target.can.mixed_devices:
        sets = _sorted_out(sets, lambda index: choices[index].group.name)
    if target is not None and not target.can.uneven_tensor_parallel:
        sets = _sorted_out(sets, lambda index: choices[index].strategy)
    for indices, policy in product(sets, policies):
        if indices:
            even = target is not None and not target.can.uneven_layers
            yield Restriction(choices=indices, recompute=policy, even_layers=even)


def _sorted_out(sets: list[tuple[int, ...]], key: Callable[[int], object]) -> list[tuple[int, ...]]:
    """Split each set by `key`, keeping the order."""
    found: list[tuple[int, ...]] = []
    for indices in sets:
        keys = list(dict.fromkeys(key(index) for index in indices))
        found.extend(tuple(i for i in indices if key(i) == value) for value in keys)
    return found
