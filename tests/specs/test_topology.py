"""Levels below and above the node, unlike rails and sizes of messages in cluster files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain.cluster import Cluster
from planner.errors import SpecError
from planner.loader import dump_yaml, load
from planner.specs import catalog
from planner.specs.cluster import cluster_from_record, cluster_record, read_cluster
from planner.units import MICROSECOND

GROUP = "groups: [{{device: h100-sxm-80gb, nodes: 8, devices_per_node: 8, {}}}]\n"
RATE = "{devices: 2, bandwidth_gbyte_per_s: 5}"


def read(tmp_path: Path, keys: str) -> Cluster:
    """Read a cluster file of one group with more `keys`."""
    path = tmp_path / "c.yaml"
    path.write_text(GROUP.format(keys))
    return read_cluster(str(path))


def test_levels_are_links_with_devices(tmp_path: Path) -> None:
    """A level is a row of the catalogue, one with changes, or figures of its own."""
    pair = "{name: nvlink-pair, devices: 2, link: nvlink3-bridge}"
    island = "{name: numa-half, devices: 4, bandwidth_gbyte_per_s: 25, efficiency: 0.5, latency_us: 6}"
    link = read(tmp_path, f"intra_node: {{link: pcie4, levels: [{pair}, {island}]}}").groups[0].intra_node
    assert (link.name, link.bandwidth) == ("pcie4", catalog.link("pcie4").bandwidth)
    assert [(level.num_devices, level.link.name) for level in link.levels] == [(2, "nvlink-pair"), (4, "numa-half")]
    assert link.levels[0].link.rate == catalog.link("nvlink3-bridge").rate
    assert (link.levels[1].link.rate, link.levels[1].link.latency) == (12.5e9, 6 * MICROSECOND)


@pytest.mark.parametrize(
    ("keys", "bandwidth", "rails"),
    [
        ("rail_rates_gbit_per_s: [400, 400, 200, 400]", 175e9, 4),
        ("rail_rates_gbit_per_s: [400, 400, 200, 400], striping: static", 100e9, 4),
        ("rail_rates_gbit_per_s: [400, 0, 200, 400]", 125e9, 3),
    ],
)
def test_rails_may_be_unlike(tmp_path: Path, keys: str, bandwidth: float, rails: int) -> None:
    """1,400 Gbit/s pooled, 4 x 200 static, 1,000 with one failed; what the file does not say is the catalogue's."""
    network = read(tmp_path, f"inter_node: {{network: efa-p5, {keys}}}").groups[0].inter_node
    usual = catalog.network("efa-p5")
    assert (network.bandwidth, network.rails, network.efficiency) == (bandwidth, rails, usual.efficiency)
    assert network.measured == ()
    alone = read(tmp_path, f"inter_node: {{{keys}}}").groups[0].inter_node
    assert (alone.bandwidth, alone.efficiency) == (bandwidth, 0.8)


def test_a_tier_may_be_a_share_of_the_network(tmp_path: Path) -> None:
    """8 x 400 Gbit/s over-subscribed 4:1 are 100 GB/s, 7:1 of the same 57.1; half sizes are 2^10 bytes."""
    tiers = "[{name: rack, nodes: 2, oversubscription: 4}, {name: pod, nodes: 4, oversubscription: 7}]"
    network = read(tmp_path, f"inter_node: {{network: ib-ndr, half_bandwidth_kib: 64}}, tiers: {tiers}").groups[0]
    assert [tier.bandwidth for tier in network.inter_node.tiers] == [100e9, 400e9 / 7]
    assert network.inter_node.half_size == 65536


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("intra_node: {link: pcie4, levels: [{devices: 3, link: nvlink4}]}",
         "intra_node.levels[0].devices: should divide the devices of the node, 8, into several parts"),
        ("intra_node: {link: pcie4, levels: [{devices: 3.0, link: nvlink4}]}", "should divide the devices of the node"),
        ("intra_node: {link: pcie4, levels: [{devices: 8, link: nvlink4}]}", "into several parts"),
        ("intra_node: {link: pcie4, levels: [{devices: 1, link: nvlink4}]}", "should be at least 2, not 1"),
        ("intra_node: {link: pcie4, levels: [{devices: 4, link: nvlink4}, {devices: 2, link: nvlink4}]}",
         "[0].devices: should divide the devices of levels[1], 2, into several parts; list levels smallest first"),
        ("intra_node: {link: pcie4, levels: [{link: nvlink4}]}", "levels[0].devices: is missing; add it"),
        ("intra_node: {link: pcie4, levels: [{devices: 2}]}", "levels[0]: gives no rate"),
        ("intra_node: {link: pcie4, levels: [{devices: 2, link: nvlnk4}]}", "no link is called 'nvlnk4'"),
        ("intra_node: {link: pcie4, levels: [{device: 2, link: nvlink4}]}", "unknown key device; did you mean devices"),
        (f"intra_node: {{link: pcie4, levels: [{{devices: 2, measured: [{RATE}, {RATE}]}}]}}",
         "levels[0].measured[1]: should be of a larger scale"),
        ("intra_node: {link: pcie4, levels: 3}", "levels: should be a list"),
        ("host: {memory_gib: 1, link: {link: pcie4, levels: []}}", "unknown key levels"),
        ("inter_node: {rail_rates_gbit_per_s: []}", "should have at least 1 entries"),
        ("inter_node: {rail_rates_gbit_per_s: [-1]}", "rail_rates_gbit_per_s[0]: should be at least 0.0, not -1"),
        ("inter_node: {rail_rates_gbit_per_s: [0, 0]}", "has no rail that works"),
        ("inter_node: {rail_rates_gbit_per_s: [9, 9], rails: 2}", "counts its rails twice; remove rails"),
        ("inter_node: {rail_rates_gbit_per_s: [9, 9], rail_gbit_per_s: 2}", "gives its rate 2 times"),
        ("inter_node: {rail_rates_gbit_per_s: [9, 0], striping: static}", "remove it from rail_rates_gbit_per_s, or"),
        ("inter_node: {network: ib-ndr, striping: static}", "does not list; add rail_rates_gbit_per_s"),
        ("inter_node: {network: ib-ndr, striping: pool}", "did you mean pooled?"),
        ("inter_node: {network: ib-ndr, half_bandwidth_kib: -1}", "should be at least 0.0, not -1"),
        ("inter_node: {network: ib-ndr, half_bandwidth_kb: 1}", "write half_bandwidth_kib"),
        ("tiers: [{name: rack, nodes: 4, oversubscription: 0.5}]", "should be at least 1"),
        ("tiers: [{name: rack, nodes: 4, oversubscription: 2, bandwidth_gbit_per_s: 9}]", "gives its rate 2 times"),
        ("tiers: [{name: rack, nodes: 4}]", "gives no rate; add bandwidth_gbyte_per_s or bandwidth_gbit_per_s or over"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_what_would_be_right(tmp_path: Path, keys: str, words: str) -> None:
    """Parts fill the node, rails are told once, and one that failed stops static striping."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, keys)
    assert words in str(caught.value)


rates = st.floats(min_value=0.1, max_value=2000.0)
links = st.fixed_dictionaries(
    {"bandwidth_gbyte_per_s": rates},
    optional={"efficiency": st.floats(0.01, 1.0), "latency_us": st.floats(0, 100), "half_bandwidth_kib": rates},
)
levels = st.dictionaries(st.sampled_from([2, 4, 8]), links).map(
    lambda parts: [{**link, "devices": size} for size, link in sorted(parts.items())]
)
networks = st.one_of(
    links,
    st.fixed_dictionaries(
        {"rail_rates_gbit_per_s": st.lists(st.one_of(rates, st.just(0.0)), min_size=1).filter(any)},
        optional={"half_bandwidth_kib": rates},
    ),
    st.fixed_dictionaries({"rail_rates_gbit_per_s": st.lists(rates, min_size=1), "striping": st.just("static")}),
)


@settings(derandomize=True, deadline=None, database=None)
@given(links, levels, networks, links)
def test_any_fabric_makes_the_round_trip(
    inside: dict[str, float], parts: list[dict[str, float]], between: dict[str, object], across: dict[str, float]
) -> None:
    """What is written of levels, rails and sizes is read back without loss, through YAML too."""
    group = {"device": "h100-sxm-80gb", "nodes": 2, "devices_per_node": 16}
    first = {**group, "name": "a", "intra_node": {**inside, "levels": parts}, "inter_node": between}
    link = {"between": ["a", "b"], "transport": "tcp", **across}
    cluster = cluster_from_record({"groups": [first, {**group, "name": "b"}], "links": [link]})
    assert len(cluster.groups[0].intra_node.levels) == len(parts)
    record = cluster_record(cluster)
    assert cluster_from_record(record) == cluster
    assert cluster_from_record(load(dump_yaml(record), "c.yaml").value) == cluster
