"""Costs of ranks that are told by their virtual stages, against those of ranks with one stage each."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from planner.costs import PlanCost, plan_cost
from planner.costs.layer import layer_cost
from planner.domain.plan import Plan, Stage, Strategy

CLUSTER = builders.cluster(builders.group(nodes=2, per_node=4))
MODEL = builders.model(16)
TIED = builders.model(16, tied=True)
SHARDED = replace(builders.framework(), gradients_wait=True)


def plan(schedule: str, *sizes: int, chunks: int = 1, zero: int = 0) -> Plan:
    """Return stages of so many layers each, with `chunks` chunks of them in a V."""
    first, stages = 0, []
    for size in sizes:
        runs = [(first, first + size // chunks - 1)]
        if chunks == 2:
            runs.append((15 - runs[0][1], 15 - runs[0][0]))
        first += size // chunks
        stages.append(
            Stage(
                group="chips",
                first_layer=runs[0][0],
                last_layer=runs[0][1],
                later_chunks=tuple(runs[1:]),
                strategy=Strategy(),
            )
        )
    return Plan(
        stages=tuple(stages),
        schedule=schedule,
        num_replicas=2,
        micro_batch=1,
        num_microbatches=16,
        zero_stage=zero,
        virtual_stages=chunks,
    )


def priced(made: Plan, *, tied: bool = False) -> PlanCost:
    """Return the costs of a plan of the small model."""
    return plan_cost(made, CLUSTER, TIED if tied else MODEL, builders.job(global_batch=32), SHARDED)


def part(costs: PlanCost, name: str) -> list[float]:
    """Return [bytes] of a part of every stage's memory."""
    return [dict(stage.memory)[name] for stage in costs.stages]


def test_gradients_of_weights_are_a_half_of_the_products() -> None:
    """Products take P forward and 2 P backward, of which P makes gradients of weights; launches stretch all alike.

    `parts` has P + 2 P of products. An embedding has none, and so no W.
    """
    asked = (builders.job(), builders.framework(), CLUSTER.groups[0], Strategy(), 1)
    body, head, embedding = (
        layer_cost(layer, *asked, pipelined=True) for layer in (MODEL.body, MODEL.head, MODEL.embedding)
    )
    assert embedding.weight_share == 0.0
    for cost in (body, head):
        parts = dict(cost.parts)
        assert 0.2 < cost.weight_share < 0.5
        launched = 1 + parts["launch"] / (sum(parts.values()) - parts["launch"])
        assert cost.weight_share * cost.backward == pytest.approx(parts["matmul"] / 3 * launched, rel=0.05)


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-h2"])
def test_one_stage_a_rank_costs_what_it_did(schedule: str) -> None:
    """Time, exchange and weights are those of 1f1b, with unequal stages; W is part of B."""
    sizes = (3, 5, 4, 4)
    plain, split = priced(plan("1f1b", *sizes)), priced(plan(schedule, *sizes))
    for before, after in zip(plain.stages, split.stages, strict=True):
        assert (after.forward, after.backward, after.sync) == pytest.approx(
            (before.forward, before.backward, before.sync)
        )
        (hosted,) = after.hosted
        assert (hosted.forward, hosted.backward) == pytest.approx((before.forward, before.backward))
        assert 0.2 * hosted.backward < hosted.weight < 0.5 * hosted.backward
        assert dict(after.parts) == pytest.approx(dict(before.parts))
    for name in ("weights", "gradients", "optimizer", "logits"):
        assert part(split, name) == part(plain, name)
    assert {stage.in_flight for stage in split.stages} == {4 if schedule == "zb-h1" else 7}
    assert split.hops == plain.hops


def test_links_are_by_sender_and_receiver() -> None:
    """Neighbours both ways, and round where chunks go in loops."""
    costs = priced(plan("zb-h1", 8, 4, 4))
    assert sorted(costs.links) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert costs.links[1, 2] == costs.hops[1].forward
    assert costs.links[1, 0] == costs.hops[0].backward
    assert (2, 0) in replace(costs, wrap=costs.hops[0]).links


def test_a_v_has_both_ends_on_one_rank() -> None:
    """Rank 0 has embedding and head, of which 1f1b has one on either end; nothing is lost, and no tied weight sent."""
    plain, vee = priced(plan("1f1b", 4, 4, 4, 4)), priced(plan("zbv", 4, 4, 4, 4, chunks=2))
    assert sum(stage.forward for stage in vee.stages) == pytest.approx(sum(stage.forward for stage in plain.stages))
    assert sum(stage.backward for stage in vee.stages) == pytest.approx(sum(stage.backward for stage in plain.stages))
    assert [len(stage.hosted) for stage in vee.stages] == [2] * 4
    assert [one.stage for stage in vee.stages for one in stage.hosted] == [0, 7, 1, 6, 2, 5, 3, 4]
    body, ends = part(vee, "weights")[1], [part(plain, "weights")[end] for end in (0, -1)]
    assert part(vee, "weights")[0] - body == pytest.approx(sum(ends) - 2 * body)
    assert vee.stages[0].hosted[1].forward > vee.stages[1].hosted[1].forward
    tied, rank = priced(plan("zbv", 4, 4, 4, 4, chunks=2), tied=True), vee.stages[0]
    assert tied.stages[0].sync < rank.sync  # it holds the weights once, and has nothing to add up with others
    assert part(tied, "weights")[0] < part(vee, "weights")[0]


def test_two_directions_hold_two_stages_and_exchange_over_twice_the_replicas() -> None:
    """Rank r of `chimera` holds what ranks r and P - 1 - r of 1f1b hold, and a half of their times is its own mean.

    ZeRO 1 over twice as many ranks halves the optimizer's states of each parameter. A micro-batch goes one way only, so
    that P/2 + 1 of them on two stages of 3 and 5 layers are at most 4 x 8 layers in all.
    """
    sizes = (3, 5, 3, 5)
    plain, both = priced(plan("1f1b", *sizes, zero=1)), priced(plan("chimera", *sizes, zero=1))
    for rank, cost in enumerate(both.stages):
        own, facing = plain.stages[rank], plain.stages[3 - rank]
        assert cost.forward == pytest.approx((own.forward + facing.forward) / 2)
        assert cost.backward == pytest.approx((own.backward + facing.backward) / 2)
        assert [(one.direction, one.stage) for one in cost.hosted] == [(0, rank), (1, 3 - rank)]
        assert [one.forward for one in cost.hosted] == pytest.approx([own.forward, facing.forward])
        assert cost.sync == pytest.approx(sum(one.sync for one in cost.hosted))
    for name, share in (("weights", 1.0), ("gradients", 1.0), ("optimizer", 0.5)):
        single = part(plain, name)
        assert part(both, name) == pytest.approx([share * (single[rank] + single[3 - rank]) for rank in range(4)])


def test_unequal_chunks_hold_what_they_hold() -> None:
    """Of 2 ranks in a V, rank 1 holds 4 chunks at most: 2 micro-batches where chunks are alike.

    With 9 layers in its first chunk and 1 in its second, more than 2 of the first are what it holds most of.
    """
    made = plan("zbv", 8, 8, chunks=2)
    stages = (
        replace(made.stages[0], first_layer=0, last_layer=1, later_chunks=((12, 15),)),
        replace(made.stages[1], first_layer=2, last_layer=6, later_chunks=((7, 11),)),
    )
    equal = priced(replace(made, stages=(stages[0], replace(stages[1]))))
    stages = (stages[0], replace(stages[1], first_layer=2, last_layer=10, later_chunks=((11, 11),)))
    unequal = priced(replace(made, stages=stages))
    assert equal.stages[1].in_flight == 2.0
    assert unequal.stages[1].in_flight > 2.0
    assert part(unequal, "activations")[1] > part(equal, "activations")[1]


@pytest.mark.parametrize(("schedule", "sharers"), [("interleaved", 1), ("breadth-first", 16)])
@pytest.mark.parametrize("rate", [1e10, 2e8])
def test_breadth_first_gathers_once_for_all_micro_batches(schedule: str, sharers: int, rate: float) -> None:
    """A layer has N = 4 x 768 x 256 + 3 x 768 x 3,072 + 2 x 768 parameters; two ranks send a half of what they share.

    ZeRO 3 gathers 2 bytes of each, forward and backward, and scatters 4 backward: T = N s, and 3 N s, over the link.
    Behind the compute C of a micro-batch hides 0.9 C; a tenth of T never hides. 16 micro-batches that pass a chunk one
    after another gather once, behind 16 C, and each adds a 16th: 1 / 16 of it all where nothing hides, or everything.
    """
    free = replace(SHARDED, gradients_wait=False, overlap_gather=0.9, exposed_gather=0.1)
    close = builders.cluster(builders.group(per_node=4, intra=rate))
    runs = [((0, 3), (8, 11)), ((4, 7), (12, 15))]
    made = Plan(
        stages=tuple(
            Stage(group="chips", first_layer=own[0], last_layer=own[1], later_chunks=(later,), strategy=Strategy())
            for own, later in runs
        ),
        schedule=schedule,
        num_replicas=2,
        micro_batch=1,
        num_microbatches=16,
        zero_stage=3,
        virtual_stages=2,
    )
    whole, sharded = (
        plan_cost(replace(made, zero_stage=zero), close, MODEL, builders.job(global_batch=32), free) for zero in (0, 3)
    )
    size = (4 * 768 * 256 + 3 * 768 * 3072 + 2 * 768) / rate
    before, after = ([*_passes(costs)[1]] for costs in (whole, sharded))  # rank 1's first chunk: no embedding, no head
    for time, sent, found in zip(before, (size, 3 * size), after, strict=True):
        hidden = 0.9 * sharers * time / 4
        exposed = (max(0.0, sent - hidden) + 0.1 * sent) / sharers
        assert found - time == pytest.approx(4 * exposed)


def _passes(costs: PlanCost) -> list[tuple[float, float]]:
    """Return (forward, backward) of every rank's first chunk."""
    return [
        (stage.hosted[0].forward, stage.hosted[0].backward) if stage.hosted else stage.chunks[0]
        for stage in costs.stages
    ]


def test_breadth_first_holds_the_chunk_that_it_gathers() -> None:
    """Two chunks of 4 layers of weights and one of gradients, where other schedules hold as much of one layer."""
    made = plan("breadth-first", 8, 8, chunks=2, zero=3)
    made = replace(made, stages=tuple(replace(one, later_chunks=one.later_chunks[:1]) for one in made.stages))
    gathered = part(priced(made), "gathered_weights")
    layer = 4 * 768 * 256 + 3 * 768 * 3072 + 2 * 768
    ends = 4096 * 768, 4096 * 768 + 768
    assert gathered == [(4 * layer + end) * (2 * 2 + 4) for end in ends]
