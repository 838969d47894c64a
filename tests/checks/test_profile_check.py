"""The check of profiles: the model, the job and the cut that were measured, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.checks import Context
from planner.checks.profile import PROFILE
from planner.domain.profile import LayerProfile, LayerTimes, ProfileRow

NONE = LayerTimes(forward=1.0, backward=1.0, update=1.0)


@pytest.fixture
def measured(sound: Context) -> Context:
    """The sound plan, its first group measured at tp 4 and micro-batch 1."""
    profile = LayerProfile(
        device="new",
        num_layers=8,
        hidden=8,
        sequence=1024,
        precision="bf16",
        rows=(ProfileRow(tp=4, micro_batch=1, embedding=NONE, body=NONE, head=NONE),),
    )
    new, old = sound.cluster.groups
    return replace(sound, cluster=replace(sound.cluster, groups=(replace(new, profile=profile), old)))


def test_what_was_measured_is_sound(measured: Context) -> None:
    """A plan that is as it was measured has no problem."""
    assert PROFILE.check(measured) == ()


def test_another_job_is_told_with_the_remedy(measured: Context) -> None:
    """Length and precision come from options; the model is another one."""
    job = replace(measured.job, sequence=512, precision="fp32")
    model = replace(measured.model, hidden=16, num_layers=4)
    problems = [str(problem) for problem in PROFILE.check(replace(measured, job=job, model=model))]
    assert [problem.removesuffix(", or leave the profile out") for problem in problems] == [
        "group new profile.layers: is 8, where fake has 4; plan the model that was measured",
        "group new profile.hidden_size: is 8, where fake has 16; plan the model that was measured",
        "group new profile.sequence: is 1024, where the job has 512; write --sequence-length 1024",
        "group new profile.precision: is bf16, where the job has fp32; write --precision bf16",
    ]


def test_another_cut_is_told_with_what_was_measured(measured: Context) -> None:
    """Micro-batches of 2 were not measured on the first group; the second has no profile."""
    plan = replace(measured.plan, micro_batch=2)
    (problem,) = PROFILE.check(replace(measured, plan=plan))
    assert str(problem) == (
        "stages[0].strategy: is tp=4 micro-batch=2 not measured on new, which has tp=4 micro-batch=1"
    )


def test_groups_that_are_not_used_are_not_judged(measured: Context) -> None:
    """The job may differ from the profile of a group on which nothing runs."""
    plan = replace(measured.plan, stages=measured.plan.stages[1:])
    job = replace(measured.job, sequence=512)
    assert PROFILE.check(replace(measured, plan=plan, job=job)) == ()
