"""Where times of layers were measured, they were measured of this model, for this job, and as the plan cuts it."""

from __future__ import annotations

from planner.checks.base import Check, Context, places
from planner.domain.cluster import DeviceGroup
from planner.domain.job import Job
from planner.domain.model import Model
from planner.errors import Problem

REMEDIES = {
    "layers": "plan the model that was measured",
    "hidden_size": "plan the model that was measured",
    "sequence": "write --sequence-length {}",
    "precision": "write --precision {}",
}
"""Trait of a profile -> what makes the job agree with it."""


def other_profiles(groups: tuple[DeviceGroup, ...], model: Model, job: Job) -> tuple[Problem, ...]:
    """Return each trait in which the profile of one of `groups` is not about `model` and `job`."""
    return tuple(
        Problem(
            f"group {group.name} profile.{trait}",
            f"is {measured}, where {model.name if 'write' not in REMEDIES[trait] else 'the job'} has {here};"
            f" {REMEDIES[trait].format(measured)}, or leave the profile out",
        )
        for group in groups
        if group.profile is not None
        for trait, here, measured in group.profile.mismatches(model, job)
    )


def _check(context: Context) -> tuple[Problem, ...]:
    used = {stage.group for _, stage in context.places()}
    groups = tuple(group for group in context.cluster.groups if group.name in used)
    return (*other_profiles(groups, context.model, context.job), *_unmeasured(context))


def _unmeasured(context: Context) -> tuple[Problem, ...]:
    """Return the stages whose tensor degree and micro-batch were not measured, with what was."""
    problems = []
    for prefix, pipeline in context.pipelines():
        for place, stage in places(pipeline, prefix, "strategy"):
            group = context.group(stage)
            reason = group.unmeasured(stage.strategy, pipeline.micro_batch // max(1, stage.split)) if group else ""
            if group and group.profile and reason:
                there = (
                    f"tp={tp} micro-batch={'/'.join(map(str, sizes))}" for tp, sizes in group.profile.micro_batches
                )
                problems.append(Problem(place, f"is {reason}, which has {', '.join(there)}"))
    return tuple(problems)


PROFILE = Check(
    code="PL107",
    name="profile",
    summary="layers are timed as they were measured, where they were",
    why="What was not measured has no time; the planner does not mix measured and computed layers.",
    check=_check,
)
