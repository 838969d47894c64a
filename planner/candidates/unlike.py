"""Plans whose replicas are of several kinds: each group has pipelines of its own, and their gradients meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from planner.candidates.choices import allows, divisors
from planner.candidates.families import Family, Restriction, find_restrictions, zero_allowed
from planner.candidates.replicas import may_be
from planner.candidates.space import Space
from planner.costs.crossing import Beyond, Crossing, crossing
from planner.domain.job import UNEQUAL
from planner.parallelism import ZERO_STAGES
from planner.schedules import Schedule

MOST_GROUPS = 3
"""Groups of a cluster up to which every set of them is tried; on more groups replicas are alike."""
SCHEDULE = "1f1b"
MOST_SAMPLES = 8
"""[samples] of a micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Groups that each have a kind of pipeline, how their gradients meet, and at which ZeRO stage."""

    groups: tuple[str, ...]
    crossing: Crossing
    zero_stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of pipeline but for its number of stages: one group, one strategy, one micro-batch, one policy."""

    group: str
    choice: int
    """Index into the choices of the space."""
    recompute: str
    """``any``, or the policy of every layer."""
    micro_batch: int
    pipelined: bool


@dataclass(frozen=True)
class UnlikeSpace:
    """What may be chosen of plans with several kinds of pipelines."""

    space: Space

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule of all kinds; None where the job admits another only."""
        return next((one for one in self.space.schedules if one.name == SCHEDULE), None)

    def meetings(self) -> Iterator[Meeting]:
        """Yield every set of groups with each ZeRO stage; none where the job asks for what only alike replicas have.

        Gradients meet at the end of a step, so that they and the weights are whole: ZeRO 0 and 1.
        """
        space = self.space
        if not may_be(UNEQUAL, space.job, space.target) or self.schedule is None:
            return
        names = [space.choices[slots.choices[0]].group.name for slots in space.slots]
        sizes = range(2, len(names) + 1) if len(names) <= MOST_GROUPS else ()
        for groups in (found for size in sizes for found in combinations(names, size)):
            between = crossing(groups, space.cluster)
            for zero in ZERO_STAGES:
                if between is not None and not zero.gradients:
                    yield Meeting(groups=groups, crossing=between, zero_stage=zero.stage)

    def kinds(self, meeting: Meeting, group: str) -> tuple[Kind, ...]:
        """Return the kinds of pipelines that a group may have, found once for all its meetings at a ZeRO stage."""
        key = (meeting.zero_stage, group)
        if key not in self._kinds:
            self._kinds[key] = tuple(self._find_kinds(*key))
        return self._kinds[key]

    @cached_property
    def _kinds(self) -> dict[tuple[int, str], tuple[Kind, ...]]:
        return {}

    def _find_kinds(self, zero_stage: int, group: str) -> Iterator[Kind]:
        space = self.space
        asked = (space.job, space.framework, space.target)
        policies = dict.fromkeys(one.recompute for one in find_restrictions(space.choices, *asked))
        for samples in divisors(space.job.global_batch):
            if samples > MOST_SAMPLES or not allows(space.job.constraints, "micro_batch", samples):
                continue
            for pipelined in (False, True):
                if not zero_allowed(zero_stage, *asked, shared=True, pipelined=pipelined):
                    continue
                for index, choice in enumerate(space.choices):
                    if choice.group.name != group or choice.split > 1 or choice.unpriced(samples):
                        continue
                    for policy in policies:
                        yield Kind(
                            group=group, choice=index, recompute=policy, micro_batch=samples, pipelined=pipelined
                        )

    def stage_counts(self, kind: Kind) -> list[int]:
        """Return the numbers of stages that a kind's pipelines may have."""
        space = self.space
        most = min(space.model.num_layers, self.devices(kind.group) // space.choices[kind.choice].width)
        counts = range(2, most + 1) if kind.pipelined else range(1, min(most, 1) + 1)
        return [stages for stages in counts if space.allows_stages(stages)]

    def devices(self, group: str) -> int:
        """Return the devices of a group that a plan may use, in whole blocks of its nodes."""
        slots = self.space.slots
        row = next(i for i, one in enumerate(slots) if self.space.choices[one.choices[0]].group.name == group)
        return int(self.space.capacity[row])

    def admits(self, replicas: int, stages: Sequence[tuple[int, int]]) -> bool:
        """Tell whether the job admits so many replicas, and the devices of (choice, stages of all its pipelines)."""
        space = self.space
        used = sum(number * space.usage[:, choice] for choice, number in stages)
        kept = bool(np.all(used >= space.least) and np.all(used <= space.capacity))
        return kept and allows(space.job.constraints, "dp", replicas)

    def most_replicas(self, kind: Kind, num_stages: int) -> int:
        """Return how many pipelines of a kind the group holds, no stage across nodes."""
        choice = self.space.choices[kind.choice]
        group = choice.group
        blocks = group.num_nodes * (group.devices_per_node // choice.block)
        return min(blocks, self.devices(kind.group) // choice.block) // num_stages

    def family(self, meeting: Meeting, kind: Kind, replicas: int, here: int, num_microbatches: int) -> Family:
        """Return what prices a kind of which `here` replicas train beside others, `replicas` in all."""
        assert self.schedule is not None, "there are kinds only where there is a schedule"
        return Family(
            schedule=self.schedule,
            zero_stage=meeting.zero_stage,
            num_replicas=replicas,
            micro_batch=kind.micro_batch,
            num_microbatches=num_microbatches,
            short_replicas=0,
            restriction=Restriction(choices=(kind.choice,), recompute=kind.recompute),
            pipelined=kind.pipelined,
            beyond=Beyond(crossing=meeting.crossing, here=here),
        )
