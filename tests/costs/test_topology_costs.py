"""Prices on parts of nodes, unlike rails, small messages and by way of hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import builders
import transcripts
from planner.costs.collectives import (
    all_to_all_rate,
    collective_rate,
    collective_time,
    device_rate,
    neighbour_rate,
    ring_rate,
)
from planner.costs.hop import StageEnd, hop_time
from planner.costs.layer import layer_cost
from planner.domain.cluster import Cluster, DeviceGroup, GroupLink, Host, Level, Link, Network, saturated
from planner.domain.plan import Strategy
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.units import GBIT

MEGATRON = replace(catalog.framework("megatron"), hop_latency=0.0, collective_latency=0.0, launch_floor=0.0)
JOB = builders.job()
PAIR = Level(num_devices=2, link=Link(name="pair", bandwidth=200e9, efficiency=1.0, latency=1e-6))
ISLAND = Level(num_devices=4, link=Link(name="island", bandwidth=50e9, efficiency=1.0, latency=2e-6))
SIZE = JOB.sequence * builders.model().hidden * 2
"""[bytes] of the hidden states of one sample"""


def boxes() -> DeviceGroup:
    """Return two nodes of eight on 20 GB/s, in islands of four on 50 and pairs on 200; rails of 5 GB/s."""
    found = builders.group(nodes=2, per_node=8, intra=20e9, inter=40e9, latency=4e-6)
    return replace(found, intra_node=replace(found.intra_node, levels=(PAIR, ISLAND)))


def tensor(degree: int) -> Strategy:
    return Strategy(degrees=(("tp", degree),))


@pytest.mark.parametrize(
    ("ranks", "inner", "gbyte_per_s"),
    [
        (2, 1, 200),  # a pair
        (4, 1, 50),  # an island
        (2, 2, 50),  # two pairs of an island, one device of each
        (8, 1, 20),  # the node
        (2, 4, 20),  # from island to island
        (3, 1, 20),  # three devices in a row: not in every row inside an island
        (4, 2, 20),  # four of eight devices
    ],
)
def test_ranks_inside_a_part_of_the_node_use_its_link(ranks: int, inner: int, gbyte_per_s: float) -> None:
    """Ranks `inner` apart span ranks x inner devices: the smallest part that they fill evenly has the link."""
    for rate in (ring_rate, neighbour_rate, all_to_all_rate):
        assert rate(boxes(), ranks, inner) == gbyte_per_s * 1e9


def test_rings_that_leave_the_node_use_the_slow_link_inside() -> None:
    """16 ranks: 20 GB/s in the node bind before the 40 GB/s of its eight rails; from node to node one rail, 5 GB/s."""
    assert ring_rate(boxes(), 16, 1) == 20e9
    assert ring_rate(boxes(), 2, 8) == 5e9


def test_many_groups_of_ranks_are_priced_at_once() -> None:
    """Arrays of ranks and of message sizes give what each gives alone."""
    group = replace(boxes(), inter_node=replace(boxes().inter_node, half_size=1e6))
    ranks, sizes = np.array([2, 4, 8, 16, 3]), np.array([1e6, 2e6, 3e6, 4e6, 0.0])
    for op in ("all_reduce", "ring", "all_to_all"):
        alone = [collective_rate(op, group, int(n), 1, float(size)) for n, size in zip(ranks, sizes, strict=True)]
        assert collective_rate(op, group, ranks, 1, sizes).tolist() == alone


def test_tensor_collectives_of_a_pair_take_its_rate_and_latency() -> None:
    """Two all-reduces each way; of s bytes over n ranks each takes 2 s (n-1)/n / rate and log2(n) latencies."""

    def waits(degree: int) -> float:
        free = replace(MEGATRON, overlap_tensor=0.0, overlap_tensor_backward=0.0)
        cost = layer_cost(builders.model().body, JOB, free, boxes(), tensor(degree), 1, pipelined=False)
        return float(dict(cost.parts)["tensor_collectives"])

    assert waits(2) == pytest.approx(4 * (2 * SIZE / 2 / 200e9 + 1e-6))
    assert waits(4) == pytest.approx(4 * (2 * SIZE * 3 / 4 / 50e9 + 2 * 2e-6))


def test_stages_of_a_node_may_lie_in_different_parts() -> None:
    """Handing over inside a node is priced on the link that joins all of it."""
    node = replace(boxes(), num_nodes=1)
    end = StageEnd(group=node, strategy=tensor(2), num_replicas=1)
    time = hop_time(end, end, Cluster(name="", groups=(node,)), builders.model(), JOB, MEGATRON, 1)
    assert time == pytest.approx(4e-6 + SIZE / 2 / 20e9)


def rails(striping: str) -> Network:
    """Return four rails of 400, 400, 200 and 400 Gbit/s."""
    rates = tuple(rate * GBIT for rate in (400, 400, 200, 400))
    total = sum(rates) if striping == "pooled" else 4 * min(rates)
    return Network(
        name="rails", bandwidth=total, efficiency=1.0, latency=0.0, rails=4, rail_rates=rates, striping=striping
    )


@pytest.mark.parametrize(("striping", "node"), [("pooled", 175e9), ("static", 100e9)])
def test_unlike_rails(striping: str, node: float) -> None:
    """All devices of a node: 1,400 Gbit/s pooled, 4 x 200 in equal parts; a device alone has its rail, at worst 200."""
    network = rails(striping)
    assert network.rate(2) == node
    assert [device_rate(network, devices, 2) for devices in (4, 8)] == [25e9, 25e9]
    assert device_rate(network, 2, 2) == 50e9  # two rails for each device
    group = replace(builders.group(nodes=2, per_node=4, intra=1e12), inter_node=network)
    assert ring_rate(group, 8, 1) == min(node, 4 * 25e9)
    assert ring_rate(group, 2, 4) == 25e9


def test_more_devices_than_rails_share_what_is_pooled() -> None:
    """Eight rings of one member each: an eighth of 175 GB/s is less than the slowest rail."""
    group = replace(builders.group(nodes=2, per_node=8, intra=1e12), inter_node=rails("pooled"))
    assert ring_rate(group, 2, 8) == 175e9 / 8
    assert ring_rate(group, 16, 1) == 175e9


def test_a_failed_rail_is_left_out() -> None:
    """Three of four rails: 3 x 400 Gbit/s, and a device alone still has a whole one."""
    rates = tuple(rate * GBIT for rate in (400.0, 0.0, 400.0, 400.0))
    network = replace(rails("pooled"), bandwidth=sum(rates), rails=3, rail_rates=rates)
    assert (network.rate(2), network.evenness) == (150e9, 1.0)
    assert device_rate(network, 4, 2) == pytest.approx(50e9)


def test_half_the_rate_at_the_half_size() -> None:
    """Rate n / (n + n_half): nothing changes without a half size, whatever the message, even none."""
    assert saturated(10e9, 65536.0, 65536.0) == 5e9
    assert saturated(10e9, 65536.0, 3 * 65536.0) == 7.5e9
    assert [saturated(10e9, 0.0, size) for size in (0.0, 1.0, 1e9, float("inf"))] == [10e9] * 4
    assert saturated(10e9, 65536.0, float("inf")) == 10e9


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "ring", "all_to_all"])
def test_small_messages_add_a_start_to_every_step(op: str) -> None:
    """8 MB over 8 ranks at 20 GB/s in messages of 1 MB, half of the rate at 1 MB: each of 7 steps takes 50 us more."""
    link = Link(name="slow start", bandwidth=20e9, efficiency=1.0, latency=0.0, half_size=1e6)
    group = replace(boxes(), intra_node=link)
    time = collective_time(op, 8e6, 8, collective_rate(op, group, 8, 1, 8e6), 0.0)
    large = collective_time(op, 8e6, 8, collective_rate(op, boxes(), 8, 1, 8e6), 0.0)
    assert time == pytest.approx(large + (14 if op == "all_reduce" else 7) * 1e6 / 20e9)
    assert time == pytest.approx(2 * large)


def test_the_slower_of_two_links_at_that_size_decides() -> None:
    """20 GB/s inside, 40 between: with messages of 1 MB, half of the rate at 4 MB, the network is down to 8 GB/s."""
    group = replace(boxes(), inter_node=replace(boxes().inter_node, half_size=4e6))
    assert ring_rate(group, 16, 1) == 20e9
    assert ring_rate(group, 16, 1, 1e6) == pytest.approx(8e9)


def test_a_hop_pays_for_its_size() -> None:
    """A device's SIZE bytes on its rail of 5 GB/s, half of it at SIZE: twice as long, apart from the latency."""
    group = boxes()
    slow = replace(group, inter_node=replace(group.inter_node, half_size=float(SIZE)))
    times = []
    for one in (group, slow):
        end = StageEnd(group=one, strategy=tensor(1), num_replicas=1)
        times.append(hop_time(end, end, Cluster(name="", groups=(one,)), builders.model(), JOB, MEGATRON, 1))
    assert times == pytest.approx([4e-6 + SIZE / 5e9, 4e-6 + 2 * SIZE / 5e9])


@pytest.mark.parametrize(
    ("transport", "host", "degree", "gbyte_per_s"),
    [
        ("rdma", 3e9, 1, 5),  # the rail
        ("tcp", 3e9, 1, 3),  # the link to the host
        ("tcp", 9e9, 1, 5),  # which is wide enough
        ("tcp", None, 1, 5),  # or not known
        ("tcp", 3e9, 8, 20),  # 8 x 3 GB/s to the host, 40 of the rails, 20 of the link between the groups
        ("tcp", 2e9, 8, 16),
    ],
)
def test_tcp_passes_the_hosts(transport: str, host: float | None, degree: int, gbyte_per_s: float) -> None:
    """The receiver's devices reach their host at `host` bytes/s each; RDMA does not pass there."""
    first = replace(boxes(), name="first")
    second = replace(boxes(), name="second", host=Host(memory=1e12, link_bandwidth=host) if host else None)
    link = GroupLink(first="first", second="second", transport=transport, bandwidth=20e9, efficiency=1.0, latency=4e-6)
    cluster = Cluster(name="", groups=(first, second), links=(link,))
    ends = [StageEnd(group=group, strategy=tensor(degree), num_replicas=1) for group in (first, second)]
    time = hop_time(ends[0], ends[1], cluster, builders.model(), JOB, MEGATRON, 1)
    assert time == hop_time(ends[1], ends[0], cluster, builders.model(), JOB, MEGATRON, 1)
    assert time == pytest.approx(4e-6 + SIZE / (gbyte_per_s * 1e9))


def test_the_example_of_pairs_and_a_bad_cable() -> None:
    """NVLink 300 x 0.73 GB/s in a pair, PCIe 31.5 x 0.7 in the box; 700 Gbit/s x 0.72 a box, half past a leaf."""
    group = read_cluster(str(transcripts.ROOT / "cluster_specs" / "a100-pcie-pairs.yaml")).groups[0]
    assert [ring_rate(group, ranks, 1) for ranks in (2, 4, 8)] == pytest.approx([219e9, 22.05e9, 22.05e9])
    assert group.inter_node.rate(2) == pytest.approx(63e9)
    assert [ring_rate(group, boxes, 8) for boxes in (2, 4)] == pytest.approx([63e9 / 8, 31.5e9 / 8])
    assert device_rate(group.inter_node, 8, 2) == pytest.approx(100 * GBIT * 0.72)
