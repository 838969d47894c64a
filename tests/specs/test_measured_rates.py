"""Measured bandwidths in cluster files: scales, what they replace, what is refused, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.domain.cluster import Cluster
from planner.errors import SpecError
from planner.loader import dump_yaml, load
from planner.specs import catalog
from planner.specs.cluster import cluster_from_record, cluster_record, read_cluster

GROUP = "groups: [{{device: h100-sxm-80gb, nodes: 8, devices_per_node: 8, {}}}]\n"
CURVE = "measured: [{nodes: 2, bandwidth_gbyte_per_s: 341.3}, {devices: 32, bandwidth_gbyte_per_s: 161}]"


def read(tmp_path: Path, keys: str) -> Cluster:
    """Read a cluster file of one group with more `keys`."""
    path = tmp_path / "c.yaml"
    path.write_text(GROUP.format(keys))
    return read_cluster(str(path))


def test_devices_are_whole_nodes_and_rates_replace_the_sheet(tmp_path: Path) -> None:
    """32 devices are 4 nodes of 8; between 2 and 4 nodes the power law, beyond them the nearest."""
    network = read(tmp_path, f"inter_node: {{network: ib-ndr, {CURVE}}}").groups[0].inter_node
    assert network.measured == ((2.0, 341.3e9), (4.0, 161e9))
    assert [network.rate(2), network.rate(4), network.rate(64)] == pytest.approx([341.3e9, 161e9, 161e9])
    assert network.rate(2**1.5) == pytest.approx((341.3e9 * 161e9) ** 0.5)
    assert network.rails == 8


def test_measured_rates_stand_alone(tmp_path: Path) -> None:
    """Without a sheet the best measured rate is the bandwidth, whatever the rails, and all of it is reached."""
    group = read(
        tmp_path,
        f"inter_node: {{rails: 4, {CURVE}}}, "
        "intra_node: {measured: [{devices: 2, bandwidth_gbyte_per_s: 249}, {devices: 4, bandwidth_gbyte_per_s: 230}]}",
    ).groups[0]
    assert (group.inter_node.bandwidth, group.inter_node.efficiency, group.inter_node.rails) == (341.3e9, 1.0, 4)
    assert group.intra_node.bandwidth == 249e9
    assert (group.intra_node.rate, group.intra_node.collective_rate(8)) == (249e9, 230e9)


def test_rates_make_the_round_trip(tmp_path: Path) -> None:
    """A record of measured rates is read back without loss, through YAML too."""
    cluster = read(tmp_path, f"inter_node: {{network: ib-ndr, {CURVE}}}, intra_node: {{link: nvlink4, {LINK}}}")
    record = cluster_record(cluster)
    assert cluster_from_record(record) == cluster
    assert cluster_from_record(load(dump_yaml(record), "c.yaml").value) == cluster


LINK = "measured: [{devices: 2, bandwidth_gbyte_per_s: 330.7}, {devices: 8, bandwidth_gbyte_per_s: 458}]"
TIERS = "tiers: [{name: rack, nodes: 4, bandwidth_gbit_per_s: 400}]"


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ("inter_node: efa-p5", True),
        ("inter_node: {network: efa-p5, latency_us: 9}", True),
        ("inter_node: {network: efa-p5, rails: 16}", False),
        ("inter_node: {network: efa-p5, efficiency: 0.5}", False),
        ("inter_node: {network: efa-p5, bandwidth_gbyte_per_s: 100}", False),
        (f"inter_node: efa-p5, {TIERS}", False),
    ],
)
def test_rates_of_the_catalogue_end_where_a_file_knows_better(tmp_path: Path, keys: str, kept: bool) -> None:
    """The catalogue's curve is of its own rails and sheet; it starts at 341 GB/s on 2 nodes."""
    assert catalog.network("efa-p5").rate(2) == 341e9
    assert bool(read(tmp_path, keys).groups[0].inter_node.measured) == kept


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("inter_node: {measured: []}", "gives no rate"),
        ("inter_node: {measured: [{bandwidth_gbyte_per_s: 5}]}", "either nodes or devices"),
        ("inter_node: {measured: [{nodes: 2, devices: 16, bandwidth_gbyte_per_s: 5}]}", "either nodes or devices"),
        ("inter_node: {measured: [{nodes: 1, bandwidth_gbyte_per_s: 5}]}", "should be at least 2"),
        ("inter_node: {measured: [{devices: 12, bandwidth_gbyte_per_s: 5}]}", "whole nodes of 8, two or more"),
        ("inter_node: {measured: [{devices: 8, bandwidth_gbyte_per_s: 5}]}", "whole nodes of 8, two or more"),
        ("inter_node: {measured: [{nodes: 2, bandwidth_gbyte_per_s: 0}]}", "should be more than 0"),
        ("inter_node: {measured: [{nodes: 4, bandwidth_gbyte_per_s: 5}, {devices: 16, bandwidth_gbyte_per_s: 5}]}",
         "inter_node.measured[1]: should be of a larger scale"),
        ("inter_node: {measured: [{nodes: 2, bandwidth_gbyte_per_s: 5}, {devices: 16, bandwidth_gbyte_per_s: 5}]}",
         "list scales ascending"),
        ("intra_node: {measured: [{devices: 4, bandwidth_gbyte_per_s: 5}, {devices: 4, bandwidth_gbyte_per_s: 5}]}",
         "intra_node.measured[1]: should be of a larger scale"),
        ("intra_node: {measured: [{nodes: 2, bandwidth_gbyte_per_s: 5}]}", "unknown key nodes"),
        (f"inter_node: {{{CURVE}}}, {TIERS}", "tiers: mean nothing beside the measured rates"),
    ],
)  # fmt: skip
def test_wrong_rates_are_told_with_what_would_be_right(tmp_path: Path, keys: str, words: str) -> None:
    """Scales ascend and differ, rates are positive, devices are whole nodes, and nothing is silently without effect."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, keys)
    assert words in str(caught.value)
