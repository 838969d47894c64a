"""Costs of context parallelism, each worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.candidates.choices import find_choices
from planner.costs import plan_cost
from planner.costs.collectives import all_to_all_rate, collective_time, neighbour_rate
from planner.costs.hop import StageEnd, hop_time
from planner.costs.layer import layer_cost
from planner.costs.priced import StageCost
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.parallelism import AXES
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.constraints import parse_constraint
from planner.specs.model import model_from_record

MEGATRON = catalog.framework("megatron")
CLUSTER = read_cluster("4x8:a100-sxm-80gb")
SEQUENCE = 32_768
KEYS_VALUES = SEQUENCE * 2 * 1024 * 2
"""[bytes] of a whole sample: 8 heads of 128, keys and values, two bytes each."""
QUERIES = SEQUENCE * 4096 * 2
"""[bytes]"""


def group(intra: float = 0.0) -> DeviceGroup:
    """Return four nodes of eight A100, eight rails of 200 Gbit/s a node; `intra` [bytes/s] instead of NVLink."""
    found = CLUSTER.groups[0]
    return replace(found, intra_node=replace(found.intra_node, bandwidth=intra, efficiency=1.0)) if intra else found


def llama() -> Model:
    """Return four layers of Llama 3 8B: 32 heads, 8 key-value heads."""
    record = {"family": "llama", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32}
    sizes = {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    return model_from_record({**record, **sizes, "max_position_embeddings": 131072}, "test")


def job(sequence: int = SEQUENCE, *constraints: str) -> Job:
    """Return 64 samples in bf16."""
    read = tuple(parse_constraint(text) for text in constraints)
    return Job(global_batch=64, sequence=sequence, precision="bf16", framework="megatron", constraints=read)


def strategy(tp: int, cp: int, kind: str = "p2p") -> Strategy:
    """Return a strategy with these degrees."""
    degrees = tuple((name, degree) for name, degree in (("tp", tp), ("cp", cp)) if degree > 1)
    return Strategy(degrees=degrees, sequence_parallel=tp > 1, cp_comm_type=kind)


def waits(on: DeviceGroup, used: Strategy) -> float:
    """Return [s] that a layer waits for the context ranks, forward and backward."""
    return float(
        dict(layer_cost(llama().body, job(), MEGATRON, on, used, 1, pipelined=False).parts)["context_collectives"]
    )


def cost(used: Strategy, *, replicas: int = 1, zero: int = 0, cluster: Cluster = CLUSTER) -> StageCost:
    """Return the cost of one stage with all four layers."""
    stage = Stage(group=cluster.groups[0].name, first_layer=0, last_layer=3, strategy=used)
    plan = Plan(
        stages=(stage,),
        schedule="1f1b",
        num_replicas=replicas,
        micro_batch=1,
        num_microbatches=64 // replicas,
        zero_stage=zero,
    )
    return plan_cost(plan, cluster, llama(), job(), MEGATRON).stages[0]


def test_a_ring_hides_behind_attention() -> None:
    """On NVLink the three steps of cp 4 take less than the attention of a block: what is left is their latency.

    Forward and backward: 2 x 3 steps x (15 us of the framework and the link's).
    """
    expected = 2 * 3 * (MEGATRON.hop_latency + group().intra_node.latency)
    assert waits(group(), strategy(1, 4)) == pytest.approx(expected)


def test_what_a_slow_ring_exposes() -> None:
    """At 1 GB/s: 3/4 of 134 MB forward and 268 MB backward, less 3/4 of the attention of the same pass.

    Attention of a rank, causal: 0.5 x 4 x 32 heads x 8,192 x 32,768 x 128 / (312e12 x 0.5) = 14.1 ms forward, and 2.5 /
    0.85 times that backward. 100.7 - 10.6 = 90.1 ms and 201.3 - 31.1 = 170.2 ms are exposed, and the latencies.
    """
    forward = 0.5 * 4 * 32 * (SEQUENCE // 4) * SEQUENCE * 128 / (312e12 * 0.5)
    exposed = 0.75 * (KEYS_VALUES / 1e9 - forward) + 0.75 * (2 * KEYS_VALUES / 1e9 - forward * 2.5 / 0.85)
    latency = 2 * 3 * (MEGATRON.hop_latency + group().intra_node.latency)
    assert waits(group(1e9), strategy(1, 4)) == pytest.approx(exposed + latency)
    assert exposed == pytest.approx(260.3e-3, rel=1e-3)


def test_heads_are_exchanged_for_tokens() -> None:
    """Of the queries, keys, values and output that a rank holds, 3/4 leave it, forward and backward; nothing hides it.

    8,192 tokens x (2 x 4,096 + 2 x 1,024) x 2 bytes = 168 MB; twice 126 MB at NVLink's rate. Eight all-to-alls, each
    with half of a collective's start, and of the link's latency for two doublings.
    """
    volume = 2 * 0.75 * (2 * QUERIES + KEYS_VALUES) / 4
    latency = 8 * (MEGATRON.collective_latency + 2 * group().intra_node.latency) / 2
    assert waits(group(), strategy(1, 4, "a2a")) == pytest.approx(volume / group().intra_node.rate + latency)


def test_tensor_ranks_share_heads_before_they_are_exchanged() -> None:
    """With tp 2 each rank has half of the heads, and so half of what is sent."""
    latency = 8 * (MEGATRON.collective_latency + 2 * group().intra_node.latency) / 2
    half, whole = waits(group(), strategy(2, 4, "a2a")), waits(group(), strategy(1, 4, "a2a"))
    assert half - latency == pytest.approx((whole - latency) / 2)


def test_rings_that_leave_the_node_use_one_adapter_each() -> None:
    """With tp 4 x cp 4 on two nodes: the device at the node's end sends alone, over its own one of eight rails."""
    rail = group().inter_node.rate(2) / 8
    assert neighbour_rate(group(), 4, 4) == pytest.approx(rail)
    assert neighbour_rate(group(), 4, 2) == group().intra_node.rate


def test_all_to_all_across_nodes_is_bound_by_the_adapters() -> None:
    """16 ranks on two nodes: each sends 15 parts, 8 of them over its own rail, which takes longer than 7 on NVLink."""
    rail = group().inter_node.rate(2) / 8
    assert all_to_all_rate(group(), 16, 1) == pytest.approx(15 / 8 * rail)
    assert all_to_all_rate(group(), 8, 1) == group().intra_node.rate
    time = collective_time("all_to_all", 16e6, 16, all_to_all_rate(group(), 16, 1), 0.0)
    assert time == pytest.approx(8e6 / rail)


def test_context_ranks_cut_activations_not_weights() -> None:
    """With cp 4 a device holds a quarter of activations and logits, and all of weights, gradients and optimizer."""
    whole, cut = dict(cost(strategy(2, 1)).memory), dict(cost(strategy(2, 4)).memory)
    for part in ("activations", "logits"):
        assert cut[part] == pytest.approx(whole[part] / 4)
    for part in ("weights", "gradients", "optimizer"):
        assert cut[part] == whole[part]


@pytest.mark.parametrize(("zero", "expected"), [(0, 18), (1, 6 + 12 / 8), (2, 2 + 16 / 8), (3, 18 / 8)])
def test_zero_shards_over_replicas_and_context(zero: int, expected: float) -> None:
    """Two replicas of cp 4 are eight ranks with the same weights: 18 bytes, 6 + 12/8, 2 + 16/8, 18/8 a parameter."""
    memory = dict(cost(strategy(1, 4), replicas=2, zero=zero).memory)
    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert state / llama().parameters == pytest.approx(expected)


def test_gradients_are_exchanged_over_replicas_and_context() -> None:
    """What dp 8 exchanges at the end of a step, dp 2 x cp 4 does too: the same weights over the same eight devices."""
    slow = replace(CLUSTER, groups=(group(1e9),))
    eight, both = cost(strategy(1, 1), replicas=8, cluster=slow), cost(strategy(1, 4), replicas=2, cluster=slow)
    whole = 2 * 7 / 8 * 4 * llama().parameters / 1e9
    hidden = [used.sync + MEGATRON.overlap_replicated * used.backward for used in (eight, both)]
    assert hidden[0] == pytest.approx(hidden[1])
    assert hidden[0] == pytest.approx(whole, rel=0.05)


def test_a_stage_hands_over_each_token_once() -> None:
    """32,768 x 4,096 x 2 bytes leave tp 2 x cp 4 on eight rails, and so do they tp 8, whoever scatters them."""
    first, second = (
        hop_time(end, end, CLUSTER, llama(), job(), MEGATRON, 1)
        for end in (StageEnd(group=group(), strategy=strategy(*cut), num_replicas=1) for cut in ((2, 4), (8, 1)))
    )
    fixed = MEGATRON.hop_latency + group().inter_node.latency
    assert first == pytest.approx(second)
    assert first - fixed == pytest.approx(SEQUENCE * 4096 * 2 / group().inter_node.rate(4))


@pytest.mark.parametrize(
    ("sequence", "constraints", "degrees"),
    [
        (8192, (), {1}),
        (16384, (), {1, 2, 4, 8}),
        (8192, ("cp <= 2",), {1, 2}),
        (16384, ("cp = 1",), {1}),
        (16424, (), {1, 2, 4}),
    ],
)
def test_long_sequences_are_cut_by_themselves(sequence: int, constraints: tuple[str, ...], degrees: set[int]) -> None:
    """The search tries context degrees from 16,384 tokens on, or where asked; cp 8 needs 16 pieces, 16,424 has 8."""
    choices, _ = find_choices(CLUSTER, llama(), job(sequence, *constraints))
    assert {choice.strategy.degree("cp") for choice in choices} == degrees


def test_ranks_with_the_same_weights_are_the_outer_ones() -> None:
    """The exchange of gradients takes them to sit as far apart as the axes that cut weights are wide."""
    replicates = [axis.replicates for axis in AXES]
    assert replicates == sorted(replicates)


def test_both_forms_are_tried_where_heads_allow() -> None:
    """8 key-value heads: tp x cp up to 8 may exchange heads, any that divides the tokens goes round a ring."""
    choices, _ = find_choices(CLUSTER, llama(), job())
    cut = [choice.strategy for choice in choices if choice.strategy.degree("cp") > 1]
    rings = {(s.degree("tp"), s.degree("cp")) for s in cut if s.cp_comm_type == "p2p"}
    assert rings == {(1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (4, 2)}
    assert {(s.degree("tp"), s.degree("cp")) for s in cut if s.cp_comm_type == "a2a"} == rings
    only, _ = find_choices(CLUSTER, llama(), job(SEQUENCE, "cp_comm_type = a2a"))
    assert {c.strategy.cp_comm_type for c in only if c.strategy.degree("cp") > 1} == {"a2a"}
    assert any(choice.strategy.degree("cp") == 1 for choice in only)
