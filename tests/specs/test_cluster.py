"""Clusters: what is read, what is refused and with which words, and what is written back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.domain.cluster import Cluster
from planner.errors import SpecError
from planner.loader import dump_yaml, load
from planner.specs import catalog
from planner.specs.cluster import cluster_from_record, cluster_record, read_cluster

MIXED = """\
name: mixed
groups:
  - name: fast
    device: h100-sxm-80gb
    nodes: 8
    devices_per_node: 8
    inter_node: {network: ib-ndr, rails: 4}
    tiers: [{name: rack, nodes: 4, bandwidth_gbit_per_s: 400}]
    host: {memory_gib: 2048, link: {bandwidth_gbyte_per_s: 55}}
    price_per_device_hour: 2.5
  - name: own
    device: {name: x1, memory_gib: 48, memory_bandwidth_gbyte_per_s: 864.3, bf16_tflops: 181.05}
    nodes: 2
    devices_per_node: 4
    shared_nodes: box
    intra_node: {bandwidth_gbyte_per_s: 25.3}
    inter_node: {rails: 2, rail_gbit_per_s: 100, latency_us: 3.3}
    mtbf_hours: 1e4
  - {name: old, device: V100-32GB, nodes: 2, devices_per_node: 4, shared_nodes: box}
links:
  - {between: [fast, own], transport: tcp, bandwidth_gbit_per_s: 100}
  - {between: [own, old], transport: node, bandwidth_gbyte_per_s: 12.7}
"""
GROUP = "groups:\n- device: h100-sxm-80gb\n  devices_per_node: 8\n"
OWN = "{name: x, memory_gib: 8, memory_bandwidth_gbyte_per_s: 100, fp16_tflops: 9}"
TIERS = "[{name: a, nodes: 4, bandwidth_gbit_per_s: 1}, {name: b, nodes: 2, bandwidth_gbit_per_s: 1}]"


def read(tmp_path: Path, text: str) -> Cluster:
    """Read a cluster file."""
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return read_cluster(str(path))


def problems(tmp_path: Path, text: str) -> list[str]:
    """Return the problems of a cluster file, without the folder."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_one_liner() -> None:
    """Groups are joined by ``+`` and get the usual links of their devices."""
    cluster = read_cluster("8x8:h100-sxm-80gb+4x8:A100-80GB+4x8:a100-sxm-80gb")
    assert [group.name for group in cluster.groups] == ["h100-sxm-80gb", "a100-sxm-80gb", "a100-sxm-80gb-2"]
    assert [group.num_devices for group in cluster.groups] == [64, 32, 32]
    row = catalog.device_row("h100-sxm-80gb")
    assert cluster.groups[0].intra_node == catalog.link(row.intra_node)
    assert cluster.groups[0].inter_node == catalog.network(row.inter_node)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("8x8:h100-sxm-80g", "did you mean h100-sxm-80gb"),
        ("0x8:h100-sxm-80gb", "no devices"),
        ("8x0:h100-sxm-80gb", "no devices"),
        ("8x-8:h100-sxm-80gb", "is not a group; write 8x8:h100-sxm-80gb"),
        ("8x8:", "is not a group"),
        ("8x8:h100-sxm-80gb+", "groups[1]"),
        ("8x8", "a one-liner looks like 8x8:h100-sxm-80gb"),
        ("no/such/file.yaml", "no such file"),
    ],
)
def test_bad_one_liners(source: str, words: str) -> None:
    """A one-liner that is none tells how one looks."""
    with pytest.raises(SpecError) as caught:
        read_cluster(source)
    assert words in str(caught.value)


def test_units_and_defaults(tmp_path: Path) -> None:
    """Bits are an eighth of bytes, rails add up, tiers are converted, and a row of the catalogue can be changed."""
    fast, own, old = read(tmp_path, MIXED).groups
    assert fast.inter_node.bandwidth == 4 * catalog.network("ib-ndr").bandwidth / catalog.network("ib-ndr").rails
    assert fast.inter_node.rails == 4
    assert fast.inter_node.tiers[0].bandwidth == 50e9
    assert fast.host is not None
    assert fast.host.link_bandwidth == 55e9
    assert own.device.memory == 48 * 2**30
    assert own.inter_node.bandwidth == 25e9
    assert own.inter_node.latency == pytest.approx(3.3e-6)
    assert own.mtbf_hours == 1e4
    assert (own.nodes, old.nodes) == ("box", "box")


def test_a_device_may_be_a_row_of_the_catalogue_with_changes(tmp_path: Path) -> None:
    """What the block does not say is the catalogue's, the usual links included."""
    changes = "{device: H100-80GB, matmul_efficiency: 0.5, fp8_efficiency: 0.4, fp4_tflops: 1, fused_attention: false}"
    text = f"groups:\n- device: {changes}\n  nodes: 2\n  devices_per_node: 8\n"
    group, row = read(tmp_path, text).groups[0], catalog.device_row("h100-sxm-80gb")
    assert group.name == "h100-sxm-80gb"
    assert group.device == replace(
        row.device,
        matmul_efficiency=0.5,
        efficiencies=(("fp8", 0.4),),
        peak_flops=(*row.device.peak_flops, ("fp4", 1e12)),
        fused_attention=False,
    )
    assert (group.intra_node, group.inter_node.name) == (catalog.link(row.intra_node), row.inter_node)


def test_a_device_of_its_own_needs_all_its_figures(tmp_path: Path) -> None:
    """What is missing is told at once, and that a row of the catalogue would do."""
    path = tmp_path / "c.yaml"
    path.write_text("groups:\n- device: {bf16_tflops: 100}\n  devices_per_node: 8\n  intra_node: nvlink4\n")
    says = "device: lacks name, memory_gib, memory_bandwidth_gbyte_per_s; add what is missing, or device: a row"
    with pytest.raises(SpecError, match=says):
        read_cluster(str(path))


def test_record_round_trip(tmp_path: Path) -> None:
    """A resolved cluster is written and read without loss, through YAML too."""
    cluster = read(tmp_path, MIXED)
    record = cluster_record(cluster)
    assert cluster_from_record(record) == cluster
    assert cluster_from_record(load(dump_yaml(record), "c.yaml").value) == cluster


@pytest.mark.parametrize("row", catalog.device_rows(), ids=lambda row: row.device.name)
def test_every_device_makes_the_round_trip(row: catalog.DeviceRow) -> None:
    """No unit of the catalogue loses a bit on its way to a record and back."""
    cluster = read_cluster(f"{2 if row.inter_node else 1}x8:{row.device.name}")
    assert cluster_from_record(cluster_record(cluster)) == cluster


def test_json_is_read_too(tmp_path: Path) -> None:
    """The same keys may be written as JSON, and problems have lines all the same."""
    path = tmp_path / "c.json"
    path.write_text('{"groups": [{"device": "h100-sxm-80gb",\n "devices_per_node": 0}]}')
    with pytest.raises(SpecError, match=r"c\.json:2 groups\[0\]\.devices_per_node: should be at least 1, not 0"):
        read_cluster(str(path))


FIELD = "c.yaml:4 groups[0]."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nodez: 2", "nodez: unknown key nodez; did you mean nodes?"),
        ("nodes: 0", "nodes: should be at least 1, not 0"),
        ("nodes: -1", "nodes: should be at least 1, not -1"),
        ("nodes: 1.5", "nodes: should be a whole number, not 1.5"),
        ("nodes: '2'", "nodes: should be a whole number, not '2'; remove the quotes"),
        ("nodes: true", "nodes: should be a whole number, not true"),
        ("nodes: 010", "nodes: 010 may mean an octal number"),
        ("name: 12", "name: should be text, not 12; put it in quotes"),
        ("mtbf_hours: .nan", "mtbf_hours: .nan is not a finite number"),
        ("mtbf_hours: -1", "mtbf_hours: should be more than 0"),
        ("host: 5", "host: should be a mapping of keys to values, not 5"),
        ("intra_node: nvlnk4", "intra_node: no link is called 'nvlnk4'; did you mean nvlink4"),
        ("intra_node: {efficiency: 1}", "intra_node: gives no rate; add bandwidth_gbyte_per_s"),
        (
            "intra_node: {bandwidth_gbps: 3}",
            "intra_node.bandwidth_gbps: unknown key bandwidth_gbps: write bandwidth_gbit_per_s or bandwidth_gbyte",
        ),
        ("intra_node: {latency: 3}", "intra_node.latency: unknown key latency: write latency_us"),
        (
            "host: {memory_gb: 3, link: pcie5}",
            "host.memory_gb: unknown key memory_gb: write memory_gib (2^30 bytes)",
        ),
        (f"tiers: {TIERS}", "tiers[1].nodes: should be more than 4"),
    ],
)
def test_problems_of_a_group(tmp_path: Path, line: str, message: str) -> None:
    """Each kind of mistake is told with file, line and key, and with what would be right."""
    found = problems(tmp_path, f"{GROUP}  {line}\n")
    assert any(problem.startswith(FIELD + message) for problem in found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1\n", "c.yaml:1: should be a mapping of keys to values, not a list"),
        ("just words\n", "c.yaml:1: should be a mapping of keys to values, not 'just words'"),
        ("groups: []\n", "c.yaml:1 groups: should have at least 1 entries, not 0"),
        ("name: x\n", "c.yaml:1 groups: is missing; add it"),
        (
            f"{GROUP}- device: H100-80GB\n  devices_per_node: 8\n",
            "c.yaml:4 groups[1].name: h100-sxm-80gb is the name of groups[0] too",
        ),
        (
            f"{GROUP}links: [{{between: [h100-sxm-80gb, b], bandwidth_gbit_per_s: 1}}]\n",
            "c.yaml:4 links[0].between[1]: no group is called 'b'",
        ),
        (
            f"groups:\n- device: {OWN}\n  devices_per_node: 8\n  nodes: 2\n  intra_node: nvlink4\n",
            "c.yaml:2 groups[0].inter_node: is missing, and no network is usual for a device given in full; 2 nodes",
        ),
        (
            f"groups:\n- device: {OWN}\n  devices_per_node: 8\n",
            "c.yaml:2 groups[0].intra_node: is missing, and no link is usual",
        ),
        (
            "groups:\n- device: {name: x, memory_gib: 8, memory_bandwidth_gbyte_per_s: 100}\n  devices_per_node: 8\n",
            "c.yaml:2 groups[0].device: gives no peak rate; add bf16_tflops",
        ),
        (
            MIXED.replace("transport: node", "transport: rdma"),
            "c.yaml:19 groups[2].shared_nodes: own and old share nodes; add their link inside the node",
        ),
        (
            MIXED.replace("between: [own, old]", "between: [fast, old]"),
            "c.yaml:22 links[1].transport: node is of groups that share nodes",
        ),
    ],
)
def test_problems_between_fields(tmp_path: Path, text: str, message: str) -> None:
    """What no single field tells is told in the same way."""
    found = problems(tmp_path, text)
    assert any(problem.startswith(message) for problem in found), found


def test_all_problems_at_once(tmp_path: Path) -> None:
    """Traps of YAML, wrong values and unknown names of one file are reported together, in the order of its lines."""
    text = (
        "name: a\nname: b\ngroups:\n- {device: nope-80gb, nodes: 0, devices_per_node: 010}\n- {device: h100-sxm-80gb}\n"
    )
    text += "links:\n- {between: [x, h100-sxm-80gb], bandwidth_gbit_per_s: .inf}\n"
    found = [problem.split(": ")[0] for problem in problems(tmp_path, text)]
    assert found[0] == "c.yaml:2 name"
    assert set(found[1:]) == {
        "c.yaml:4 groups[0].device",
        "c.yaml:4 groups[0].nodes",
        "c.yaml:4 groups[0].devices_per_node",
        "c.yaml:5 groups[1].devices_per_node",
        "c.yaml:7 links[0].between[0]",
        "c.yaml:7 links[0].bandwidth_gbit_per_s",
    }


JUNK = [
    "groups: 3",
    "groups: [3, null, []]",
    "groups: {a: 1}",
    "groups: [{}]\nlinks: [3, {between: 4}]",
    "groups: [{device: []}]",
]


@pytest.mark.parametrize("junk", JUNK)
def test_wrong_shapes_are_problems(tmp_path: Path, junk: str) -> None:
    """Whatever shape stands where, it is a problem and never a traceback."""
    assert problems(tmp_path, junk)
