"""What a check is: a rule that must hold of any plan, whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.errors import Problem


class StageMemory(Protocol):
    """Whatever knows the memory of a stage: its cost, or its prediction."""

    @property
    def memory(self) -> tuple[tuple[str, float], ...]:
        """[bytes] on the fullest device at its largest peak, by part."""

    @property
    def peaks(self) -> tuple[tuple[str, float], ...]:
        """[bytes] of each peak by its name, in the order in which a run meets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A plan and all that it is judged by. Nothing in it needs to make sense: that is what the checks find out."""

    plan: Plan
    cluster: Cluster
    model: Model
    job: Job
    stages: tuple[StageMemory, ...] | None = None
    """Memory of each stage of every kind of pipeline; None where it is not known, and then memory is not judged."""

    def group(self, stage: Stage) -> DeviceGroup | None:
        """Return the group that `stage` runs on, or None if the cluster has none of that name."""
        return next((group for group in self.cluster.groups if group.name == stage.group), None)

    def pipelines(self) -> Iterator[tuple[str, Plan]]:
        """Yield every kind of pipeline with what its places begin with."""
        for index, pipeline in enumerate(self.plan.pipelines):
            yield f"other_pipelines[{index - 1}]." if index else "", pipeline

    def places(self, key: str = "") -> Iterator[tuple[str, Stage]]:
        """Yield each stage of every kind of pipeline with the place of its `key` in the plan."""
        for prefix, pipeline in self.pipelines():
            yield from places(pipeline, prefix, key)


def places(pipeline: Plan, prefix: str, key: str = "") -> Iterator[tuple[str, Stage]]:
    """Yield each stage of a pipeline with the place of its `key`, which begins with `prefix`."""
    for index, stage in enumerate(pipeline.stages):
        yield f"{prefix}stages[{index}].{key}" if key else f"{prefix}stages[{index}]", stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule. It never fails on nonsense, and leaves to other rules what is theirs to say."""

    code: str
    """Stable, as in ``planner explain PL108``."""
    name: str
    summary: str
    """What holds of a plan that passes."""
    why: str
    """What happens where it does not hold."""
    check: Callable[[Context], tuple[Problem, ...]]
