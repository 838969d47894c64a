"""Measured machines in the costs: rates by scale, and layers whose seconds are those of a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from planner.costs.collectives import all_to_all_rate, neighbour_rate, ring_rate
from planner.costs.stage import backward_time, forward_time, layer_costs, stage_terms, sync_time
from planner.domain.cluster import DeviceGroup
from planner.domain.plan import Strategy
from planner.domain.profile import LayerProfile, LayerTimes, ProfileRow
from planner.specs import catalog

MEGATRON = catalog.framework("megatron")
JOB = builders.job()
TP2 = Strategy(degrees=(("tp", 2),), sequence_parallel=True)
ROW = ProfileRow(
    tp=2,
    micro_batch=1,
    embedding=LayerTimes(forward=0.5, backward=0.25, update=0.01),
    body=LayerTimes(forward=1.0, backward=2.0, update=0.02),
    head=LayerTimes(forward=0.75, backward=1.5, update=0.03),
)
PROFILE = LayerProfile(
    device="chip", num_layers=4, hidden=0, sequence=JOB.sequence, precision=JOB.precision, rows=(ROW,)
)


def machine(*, profile: LayerProfile | None = None) -> DeviceGroup:
    """Return two nodes of four with a measured link and network."""
    group = builders.group(nodes=4)
    return replace(
        group,
        intra_node=replace(group.intra_node, measured=((2.0, 9e10), (4.0, 6e10))),
        inter_node=replace(group.inter_node, measured=((2.0, 2e10), (4.0, 1e10))),
        profile=profile,
    )


def test_collectives_run_at_the_rate_of_their_scale() -> None:
    """Two and four ranks of a node; rings over 2 and 4 nodes; 1/4 of the node's rate where four rings share it."""
    group = machine()
    assert [ring_rate(group, ranks, 1) for ranks in (2, 4, 8, 16)] == [9e10, 6e10, 2e10, 1e10]
    assert [ring_rate(group, nodes, 4) for nodes in (2, 4)] == [2e10 / 4, 1e10 / 4]
    assert [neighbour_rate(group, ranks, 1) for ranks in (2, 4)] == [9e10, 6e10]
    assert [all_to_all_rate(group, ranks, 1) for ranks in (2, 4)] == [9e10, 6e10]


def test_layers_take_the_measured_time_and_the_computed_memory() -> None:
    """Seconds are the profile's in one part; parameters and what is kept are those of the layer without a profile."""
    model = builders.model()
    costs = layer_costs(model, JOB, MEGATRON, machine(profile=PROFILE), TP2, 1, pipelined=False)
    computed = layer_costs(model, JOB, MEGATRON, machine(), TP2, 1, pipelined=False)
    for kind in ("embedding", "body", "head"):
        cost, other, times = getattr(costs, kind), getattr(computed, kind), getattr(ROW, kind)
        assert (cost.forward, cost.backward, cost.update) == (times.forward, times.backward, times.update)
        assert cost.parts == (("measured", times.forward + times.backward),)
        assert (cost.kept, cost.parameters, cost.transient) == (other.kept, other.parameters, other.transient)
    assert dict(costs.body.replay) == {"none": 0.0, "selective": 0.0, "op": 1.0, "full": 1.0}


@pytest.mark.parametrize(("zero_stage", "share"), [(0, 1.0), (1, 0.5)])
def test_a_stage_adds_up_what_was_measured(zero_stage: int, share: float) -> None:
    """The first of two stages, three layers, one recomputed: 3 x 1 + 0.5 and 3 x 2 + 1 x 1 + 0.25 seconds.

    Its update is 3 x 0.02 + 0.01, halved where two replicas share it; the exchange is the computed one.
    """
    costs = layer_costs(builders.model(), JOB, MEGATRON, machine(profile=PROFILE), TP2, 1, pipelined=False)
    terms = stage_terms(
        costs, JOB, MEGATRON, policy="none", num_replicas=2, zero_stage=zero_stage, first=True, last=False
    )
    assert forward_time(terms, 3) == pytest.approx(3.5)
    assert backward_time(terms, 3, 1) == pytest.approx(7.25)
    exchange = 3 * terms.exchange_layer + terms.exchange_edge
    exposed = max(exchange - terms.overlap * 7.25, (1 - terms.overlap) * exchange)
    assert sync_time(terms, 3, 7.25) == pytest.approx(exposed + share * 0.07)


def test_only_what_was_measured_has_a_time() -> None:
    """The tensor degree and the micro-batch must both have been measured, and nothing else may be cut."""
    group = machine(profile=PROFILE)
    assert group.unmeasured(TP2, 1) == ""
    assert group.unmeasured(TP2, 2) == "tp=2 micro-batch=2 not measured on chips"
    assert group.unmeasured(Strategy(), 1) == "tp=1 micro-batch=1 not measured on chips"
    both = Strategy(degrees=(("tp", 2), ("cp", 2)))
    assert group.unmeasured(both, 1) == "tp=2 cp=2 micro-batch=1 not measured on chips"
    assert machine().unmeasured(both, 7) == ""
