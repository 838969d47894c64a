"""The costs of a plan as values: what the replay runs on and the report explains."""

from __future__ import annotations

from dataclasses import dataclass

from planner.costs.levels import NO_LEVELS, Levels
from planner.units import Bytes, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCost:
    """What a rank needs for one micro-batch on one of the virtual stages that it runs."""

    direction: int
    stage: int
    """In the order of the layers."""
    forward: Seconds
    backward: Seconds
    weight: Seconds
    """The part of the backward time that makes the gradients of weights."""
    share: float
    """[-] of the layers that the rank runs."""
    sync: Seconds
    """Once a step, where the stage's gradients are exchanged and used without waiting for others; else 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCost:
    """Time and memory of one stage."""

    forward: Seconds
    """Of one micro-batch."""
    backward: Seconds
    """Of one micro-batch, recompute included."""
    sync: Seconds
    """Of one update: exposed gradient exchange, the optimizer, and weights that are predicted until the next one."""
    memory: tuple[tuple[str, Bytes], ...]
    """By part, at the largest peak."""
    peaks: tuple[tuple[str, Bytes], ...]
    """Each peak by its name, in the order in which a run meets them."""
    parts: tuple[tuple[str, Seconds], ...]
    """Forward and backward time of one micro-batch by what it is spent on."""
    in_flight: float
    """Micro-batches whose activations are held at once."""
    chunks: tuple[tuple[Seconds, Seconds], ...] = ()
    """(forward, backward) of each chunk for one micro-batch; empty if the stage is one chunk."""
    levels: Levels = NO_LEVELS
    """What the memory rises and falls by."""
    update: Seconds = 0.0
    """Of `sync`, what the optimizer's step takes, predictions included, which comes last."""
    prediction: Seconds = 0.0
    """Of `update`, what predicting weights takes."""
    held_at_update: float = 0.0
    """Micro-batches whose activations are held while the optimizer steps."""
    hosted: tuple[HostedCost, ...] = ()
    """What it runs, in the order of `Schedule.hosted`, where the schedule is given by its passes."""

    @property
    def passes(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(forward, backward) of each pass that a micro-batch makes on the stage."""
        return self.chunks or ((self.forward, self.backward),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Transfers of one micro-batch between a stage and the next, or from the last one back to the first."""

    forward: Seconds
    backward: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """Costs of all stages and of what lies between them."""

    stages: tuple[StageCost, ...]
    hops: tuple[Hop, ...]
    """Between a stage and the next."""
    step_overhead: Seconds
    wrap: Hop | None = None
    """From the last stage to the first one's next chunk; None if a micro-batch passes the stages once."""
    blocking: bool = False
    """Whether a stage waits until what it sends has arrived."""
    others: tuple[PlanCost, ...] = ()
    """Of the other kinds of pipelines."""

    @property
    def pipelines(self) -> tuple[PlanCost, ...]:
        """The costs of every kind of pipeline, this one first."""
        return (self, *self.others)

    @property
    def all_stages(self) -> tuple[StageCost, ...]:
        """The stages of every kind of pipeline, after one another."""
        return tuple(stage for pipeline in self.pipelines for stage in pipeline.stages)

    @property
    def sends(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(activations, gradients) that each stage waits for after it sent those of one micro-batch."""
        if not self.blocking:
            return ((0.0, 0.0),) * len(self.stages)
        return tuple(
            zip([*(hop.forward for hop in self.hops), 0.0], [0.0, *(hop.backward for hop in self.hops)], strict=True)
        )

    @property
    def passes(self) -> tuple[tuple[Seconds, Seconds], ...]:
        """(forward, backward) of one micro-batch on every chunk, in the order of the layers, and what blocks it."""
        sends = self.sends * len(self.stages[0].passes)
        rounds = zip(*(stage.passes for stage in self.stages), strict=True)
        times = [times for chunks in rounds for times in chunks]
        return tuple((ahead + on, back + off) for (ahead, back), (on, off) in zip(times, sends, strict=True))

    @property
    def links(self) -> dict[tuple[int, int], Seconds]:
        """[s] of one transfer from a stage to another, by (sender, receiver)."""
        last = len(self.stages) - 1
        found: dict[tuple[int, int], Seconds] = {}
        if self.wrap is not None:
            found |= {(last, 0): self.wrap.forward, (0, last): self.wrap.backward}
        for index, hop in enumerate(self.hops):
            found |= {(index, index + 1): hop.forward, (index + 1, index): hop.backward}
        return found

    @property
    def joints(self) -> tuple[Hop, ...]:
        """The transfers between the chunks of `passes` that run beside them."""
        if self.blocking:
            return (Hop(forward=0.0, backward=0.0),) * len(self.hops)
        if self.wrap is None:
            return self.hops
        once = (*self.hops, self.wrap)
        return (once * len(self.stages[0].passes))[:-1]
