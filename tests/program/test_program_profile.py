"""Measured layers in the search: against every plan there is, and nothing that was not measured."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from cases import check_optimum, searched

from builders import Planning, cluster, drawn, group, job, model, planning
from planner.domain.profile import LayerProfile, LayerTimes, ProfileRow
from planner.errors import NoFeasiblePlan

SEEDS = range(6000, 6060)


def times(draw: random.Random, scale: float) -> LayerTimes:
    return LayerTimes(
        forward=scale * draw.uniform(0.5, 1.5), backward=scale * draw.uniform(1.0, 3.0), update=scale * draw.random()
    )


def profile(asked: Planning, draw: random.Random, pairs: list[tuple[int, int]]) -> LayerProfile:
    """Return random times of some (tp, micro-batch)."""
    rows = [
        ProfileRow(
            tp=tp,
            micro_batch=samples,
            embedding=times(draw, 1e-3 * samples / tp),
            body=times(draw, 1e-2 * samples / tp),
            head=times(draw, 1e-2 * samples / tp),
        )
        for tp, samples in sorted(pairs)
    ]
    return LayerProfile(
        device="chip",
        num_layers=asked.model.num_layers,
        hidden=asked.model.hidden,
        sequence=asked.job.sequence,
        precision=asked.job.precision,
        rows=tuple(rows),
    )


def profiled(seed: int) -> Planning:
    """Return a random problem in which some groups have profiles, each of two thirds of what there may be."""
    asked, draw = drawn(seed, most_devices=6, most_layers=6), random.Random(seed)  # noqa: S311 (a problem is drawn)
    groups = []
    for one in asked.cluster.groups:
        pairs = [(tp, samples) for tp in (1, 2, 3, 4) for samples in (1, 2, 3, 4, 8) if draw.random() < 0.67]
        measured = profile(asked, draw, pairs or [(1, 1)]) if draw.random() < 0.75 else None
        groups.append(replace(one, profile=measured))
    return replace(asked, cluster=replace(asked.cluster, groups=tuple(groups)))


@pytest.mark.parametrize("seed", SEEDS)
def test_optimum_of_measured_layers_is_that_of_every_plan(seed: int) -> None:
    """The best plan is as good as the best of all plans whose times were measured, and every plan met is one of them.

    Groups with and without a profile stand side by side.
    """
    asked = profiled(seed)
    check_optimum(asked)


def test_profiles_decide_among_the_problems() -> None:
    """Among the problems are such with a plan, and such in which profiles rule out what would be possible without."""
    lost = won = 0
    for seed in SEEDS:
        asked = profiled(seed)
        free = replace(
            asked, cluster=replace(asked.cluster, groups=tuple(replace(g, profile=None) for g in asked.cluster.groups))
        )
        here, there = bool(searched(asked, 0.5).found), bool(searched(free, 0.5).found)
        won += here
        lost += there and not here
    assert won > 20
    assert lost > 0


def test_what_was_not_measured_is_rejected_and_counted() -> None:
    """Of tp 1, 2 and 4 and micro-batches 1, 2, 4 only (1, 1) and (2, 4) were measured: seven are rejected.

    tp 4 has no time at all, and so is no choice.
    """
    asked = planning(cluster(group()), model(2, heads=4), job(4))
    measured = profile(asked, random.Random(1), [(1, 1), (2, 4)])  # noqa: S311
    asked = replace(asked, cluster=cluster(replace(group(), profile=measured)))
    space = asked.space
    reasons = {reason for reason in space.rejections if "not measured" in reason}
    assert reasons == {
        f"tp={tp} micro-batch={samples} not measured on chips"
        for tp, samples in ((1, 2), (1, 4), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4))
    }
    assert [choice.width for choice in space.choices] == [1, 2]
    priced = {(space.choices[i].width, f.micro_batch) for f in space.families for i in f.restriction.choices}
    assert priced == {(1, 1), (2, 4)}


def test_nothing_measured_is_no_plan() -> None:
    """Where no micro-batch that divides the batch was measured there is no choice, and the reasons say so."""
    asked = planning(cluster(group()), model(2, heads=4), job(4))
    measured = profile(asked, random.Random(1), [(1, 8)])  # noqa: S311
    with pytest.raises(NoFeasiblePlan) as caught:
        _ = replace(asked, cluster=cluster(replace(group(), profile=measured))).space
    assert "tp=1 micro-batch=4 not measured on chips" in caught.value.rejections
