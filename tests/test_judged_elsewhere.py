"""A plan that is judged on another cluster: on which groups, and that it is said where these are not its own."""

from __future__ import annotations

from dataclasses import replace

import builders
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.plan import Plan, Stage, Strategy
from planner.pipeline import judge, placed
from planner.specs.plan import PlanFile, unwritten

SLOW, FAST = builders.group("old"), builders.group("new", speed=2.0)


def hall(*groups: DeviceGroup) -> Cluster:
    return Cluster(name="hall", groups=groups)


def plan_file() -> PlanFile:
    """Return a plan with a stage on each group."""
    stages = (
        Stage(group="new", first_layer=0, last_layer=2, strategy=Strategy()),
        Stage(group="old", first_layer=3, last_layer=3, strategy=Strategy()),
    )
    plan = Plan(stages=stages, schedule="1f1b", num_replicas=4, micro_batch=1, num_microbatches=4, zero_stage=1)
    return unwritten(plan, hall(SLOW, FAST), builders.model(), builders.job(plan.global_batch), "plan.yaml")


def judged_on(*groups: DeviceGroup) -> tuple[list[str], list[str]]:
    """Return the groups of the stages on another cluster, and what is said of groups."""
    file, cluster = plan_file(), hall(*groups)
    _, _, notes = judge(file, cluster)
    return [stage.group for stage in placed(file, cluster)[0].stages], [note for note in notes if "has no" in note]


def test_groups_of_the_same_name_are_the_same() -> None:
    """In whatever order they stand, and without a word."""
    assert judged_on(FAST, SLOW) == (["new", "old"], [])


def test_groups_of_the_same_device_stand_for_one_another() -> None:
    """Before those that stand in the same place; each is told with both devices."""
    fast, slow = replace(FAST, name="east"), replace(SLOW, name="west")
    groups, notes = judged_on(fast, slow)
    assert groups == ["east", "west"]
    assert notes == [
        "hall has no group old; the stages on it (old) are judged on west (old)",
        "hall has no group new; the stages on it (new) are judged on east (new)",
    ]


def test_a_group_that_is_there_stays() -> None:
    """Only the group that is missing has a stand-in, with another device, which is said."""
    other = builders.group("newer", speed=4.0)
    groups, notes = judged_on(FAST, other)
    assert groups == ["new", "newer"]
    assert notes == ["hall has no group old; the stages on it (old) are judged on newer (newer)"]


def test_other_numbers_of_groups_have_no_stand_ins() -> None:
    """Then the stages are nowhere, which is a problem."""
    file = plan_file()
    _, problems, _ = judge(file, hall(FAST))
    nowhere = [one.place for one in problems if "which the cluster does not have" in one.message]
    assert nowhere == ["stages[1].group"]
