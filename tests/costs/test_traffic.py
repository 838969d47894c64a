"""Bytes between stages and replicas, from the same functions as the times."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from planner.costs.traffic import plan_traffic
from planner.domain.plan import Plan, Stage, Strategy

MODEL = builders.model(4, tied=False)
TIED = builders.model(4, tied=True)
CLUSTER = builders.cluster(builders.group(nodes=2, per_node=4))
HIDDEN = builders.SEQUENCE * MODEL.hidden * 2
"""[bytes] of the hidden states of one sample in 16 bits"""


def plan(num_stages: int, *, dp: int = 2, tp: int = 1, zero_stage: int = 0, vpp: int = 1) -> Plan:
    layers = MODEL.num_layers // num_stages
    return Plan(
        stages=tuple(
            Stage(
                group="chips",
                first_layer=index * layers,
                last_layer=(index + 1) * layers - 1,
                strategy=Strategy(degrees=(("tp", tp),)),
            )
            for index in range(num_stages)
        ),
        schedule="1f1b",
        num_replicas=dp,
        micro_batch=1,
        num_microbatches=3,
        zero_stage=zero_stage,
        virtual_stages=vpp,
    )


def test_stages_hand_over_hidden_states_both_ways() -> None:
    """One sample of 384 tokens x 768 x 2 bytes = 589,824 there, and as much back; ranks of tp 2 each send all of it."""
    (found,) = plan_traffic(plan(2), CLUSTER, MODEL, builders.job(), builders.framework())
    assert [(joint.first, joint.second, joint.per_microbatch) for joint in found.joints] == [
        (0, 1, 2 * HIDDEN),
        (0, 1, 0.0),
    ]
    whole = builders.framework(scattered_hops=False)
    (found,) = plan_traffic(plan(2, tp=2), CLUSTER, MODEL, builders.job(), whole)
    assert found.joints[0].per_microbatch == 4 * HIDDEN


def test_chunks_pass_every_joint_once_each_and_the_way_round_between() -> None:
    """With two chunks each joint is passed twice, the way from the last stage to the first once."""
    (found,) = plan_traffic(plan(2, vpp=2), CLUSTER, MODEL, builders.job(), builders.framework())
    assert [joint.per_microbatch for joint in found.joints] == [4 * HIDDEN, 2 * HIDDEN]


def test_tied_weights_are_added_once_a_step() -> None:
    """4,096 tokens x 768 gradients of 4 bytes."""
    (found,) = plan_traffic(plan(2), CLUSTER, TIED, builders.job(), builders.framework())
    assert found.joints[-1].per_step == pytest.approx(4096 * 768 * 4)
    assert found.joints[0].per_step == 0.0


@pytest.mark.parametrize(("zero_stage", "bytes_each"), [(0, 2 * 4), (1, 2 + 4), (2, 2 + 3 * 4), (3, 2 * 3 * 2 + 3 * 4)])
def test_rings_carry_what_the_zero_stage_says(zero_stage: int, bytes_each: int) -> None:
    """On 2 ranks half of the bytes of each parameter is sent.

    Those are 4 twice of an all-reduce; 2 of a gather and 4 of a scatter; or for each of 3 micro-batches 4 of a scatter,
    and 2 of gathers both ways where weights are sharded.
    """
    framework = builders.framework(gradients_wait=False)
    (found,) = plan_traffic(plan(1, zero_stage=zero_stage), CLUSTER, MODEL, builders.job(), framework)
    assert found.rings == (pytest.approx(MODEL.parameters * bytes_each / 2),)


def test_breadth_first_gathers_and_scatters_once() -> None:
    """2 bytes of gathers both ways and 4 of a scatter, whatever the number of micro-batches is."""
    framework = builders.framework(gradients_wait=False)
    made = replace(plan(1, zero_stage=3, vpp=2), schedule="breadth-first")
    (found,) = plan_traffic(made, CLUSTER, MODEL, builders.job(), framework)
    assert found.rings == (pytest.approx(MODEL.parameters * (2 + 2 + 4) / 2),)


def test_copies_of_a_stage_join_the_ring() -> None:
    """Two copies in each of two replicas are four ranks, which send 3/4 of twice 4 bytes."""
    split = plan(1)
    split = replace(split, micro_batch=2, stages=(replace(split.stages[0], split=2),))
    (found,) = plan_traffic(split, CLUSTER, MODEL, builders.job(), builders.framework())
    assert found.rings == (pytest.approx(MODEL.parameters * 2 * 4 * 3 / 4),)
