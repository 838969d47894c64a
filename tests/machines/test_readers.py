"""Readers of dumps: what each tells of a machine, and what it says of a broken one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from machines.dumps import FILES, dump
from planner.errors import SpecError
from planner.machines import READERS, Machine, Nodes, Offers, Tie, Topology, read_dump

READ_BY = {
    "nvidia_topo": "nvidia-smi topo -m",
    "nvidia_smi": "nvidia-smi -q -x",
    "nvidia_query": "nvidia-smi --query-gpu=name,memory.total --format=csv",
    "nccl": "NCCL_TOPO_DUMP_FILE",
    "rocm_smi": "rocm-smi --showtopo --showproductname",
    "amd_smi": "amd-smi static --json, amd-smi topology --json",
    "slurm_node": "scontrol -o show node",
    "slurm_gb200_nodes": "scontrol -o show node",
    "slurm_topology.t": "scontrol show topology",
    "slurm_topology.c": "scontrol show topology",
    "slurm_topology.y": "topology.yaml",
    "slurm_gb200_blocks": "scontrol show topology",
    "kubectl": "kubectl get nodes -o json",
    "skypilot": "a catalogue of SkyPilot",
}
"""Beginning of a file's name -> reader."""


def read(name: str) -> Any:
    return read_dump(dump(name), name)[1]


def problem(text: str, origin: str = "dump") -> str:
    """Return what is said of a text that must be refused."""
    with pytest.raises(SpecError) as caught:
        read_dump(text, origin)
    return str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_a_dump_is_of_one_tool(name: str) -> None:
    """Every dump is recognised by its reader, and by no other."""
    wanted = next(reader for start, reader in READ_BY.items() if name.startswith(start))
    assert [reader.name for reader in READERS if reader.recognises(dump(name))] == [wanted]


def test_a_matrix_with_switches_has_one_tie() -> None:
    """NV18 among all; header with ANSI codes, ten adapters."""
    machine: Machine = read("nvidia_topo_h100.txt")
    assert (machine.num_devices, machine.adapters) == (8, 10)
    assert set(machine.ties.values()) == {Tie("nvlink", 18)}
    assert len(machine.ties) == 28


def test_a_matrix_tells_pairs_and_sockets() -> None:
    """NV12 in pairs, NODE within a half, SYS across; columns by blanks, adapters as mlx5_0."""
    machine: Machine = read("nvidia_topo_a100_pcie.txt")
    assert machine.ties[0, 1] == Tie("nvlink", 12)
    assert machine.ties[1, 2] == Tie("pcie")
    assert machine.ties[3, 4] == Tie("pcie", far=True)
    assert machine.adapters == 4


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("GPU3\tNV18", "GPU9\tNV18", "dump:1: has no row for GPU3; the dump is cut off, take it anew with nvidia-smi"),
        ("GPU1\tNV18", "GPU1\tXX18", "dump:3 GPU1: has 'XX18' to GPU0; the known codes are NV#, PIX, PXB, PHB, NODE"),
        ("GPU1\tNV18", "GPU1\tSYS", "dump:3 GPU1: has SYS to GPU0, which says otherwise; take the dump anew"),
    ],
)
def test_a_broken_matrix_is_placed(old: str, new: str, says: str) -> None:
    """A missing row, an unknown code and a contradiction are told with their line."""
    assert problem(dump("nvidia_topo_h100.txt").replace(old, new)).startswith(says)


def test_the_xml_tells_names_memory_and_bus() -> None:
    """Name, GiB and PCI Express of each device; the DTD that it names is not fetched."""
    machine: Machine = read("nvidia_smi_mixed.xml")
    assert machine.names == ("NVIDIA GeForce RTX 3080",) * 2 + ("NVIDIA GeForce RTX 4090",) * 2
    assert machine.memory_gib == (10.0, 10.0, 24564 / 1024, 24564 / 1024)
    assert machine.pcie == ((4, 16), (4, 16), (4, 16), (3, 16))
    assert machine.notes == ()


def test_slices_are_noted() -> None:
    """MIG is said, and devices stay whole."""
    text = dump("nvidia_smi_h100.xml").replace("<current_mig>Disabled", "<current_mig>Enabled", 3)
    machine = read_dump(text, "x")[1]
    assert isinstance(machine, Machine)
    assert machine.notes == ("MIG is on for 3 of 8 devices; they are planned whole, turn it off to train on them",)


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY % x SYSTEM "http://192.0.2.1/x.dtd"> %x;]>',
    ],
)
def test_entities_are_refused(declared: str) -> None:
    """Neither files nor bombs come in by entities."""
    inside = "<gpu><product_name>&x;</product_name></gpu>"
    text = f"<?xml version='1.0'?>\n{declared}\n<nvidia_smi_log>{inside}</nvidia_smi_log>"
    assert problem(text) == "dump:2: declares entities, which are not read; give the dump as the tool wrote it"


def test_deep_xml_is_refused() -> None:
    """Nesting is bounded."""
    assert "nested more than 64 levels" in problem("<nvidia_smi_log>" + "<a>" * 100)


def test_a_query_is_read_with_and_without_its_header() -> None:
    """Columns are told by the header, or by what they hold."""
    machine: Machine = read("nvidia_query_a100_pcie.csv")
    assert (machine.names[0], machine.memory_gib[0], machine.num_devices) == ("NVIDIA A100 80GB PCIe", 80.0, 8)
    bare: Machine = read("nvidia_query_bare.csv")
    assert (bare.names[0], bare.memory_gib[0], bare.num_devices) == ("NVIDIA RTX A6000", 49140 / 1024, 4)


def test_nccl_tells_links_and_rates() -> None:
    """18 links to four switches, eight adapters of 400 Gbit/s and a slower one; the name by the PCI device."""
    machine: Machine = read("nccl_h100.xml")
    assert set(machine.ties.values()) == {Tie("nvlink", 18)}
    assert machine.adapter_gbit_per_s == (400.0,) * 8
    assert machine.names == ("NVIDIA H100 80GB HBM3",) * 8
    assert machine.notes == ("network adapters slower than 400 Gbit/s (1) are left out, as for management or storage",)


def test_nccl_tells_direct_links_and_sockets() -> None:
    """Links to another device's bus are between the two; others share a socket or not, by NUMA domain."""
    text = dump("nccl_h100.xml").replace('tclass="0x068000"', 'tclass="0x030200"').replace("0x2330", "0x20b9")
    text = text.replace('target="0000:05:00.0" count="4"', 'target="0000:19:00.0" count="4"')
    machine = read_dump(text, "x")[1]
    assert isinstance(machine, Machine)
    assert machine.ties[0, 1] == Tie("nvlink", 4)
    assert machine.ties[1, 2] == Tie("pcie")
    assert machine.ties[1, 4] == Tie("pcie", far=True)
    assert machine.names == ()
    assert "NCCL tells the generation of the devices (sm 90), not their name" in machine.notes


def test_rocm_tells_links_and_names() -> None:
    """XGMI among all; or PCI Express, within a socket (2 hops) and across (3)."""
    machine: Machine = read("rocm_smi_mi300x.txt")
    assert set(machine.ties.values()) == {Tie("xgmi")}
    assert machine.names == ("AMD Instinct MI300X OAM",) * 8
    others: Machine = read("rocm_smi_pcie.txt")
    assert (others.ties[0, 1], others.ties[1, 2]) == (Tie("pcie"), Tie("pcie", far=True))
    as_json: Machine = read("rocm_smi_mi250x.json")
    assert (as_json.names[0], as_json.ties[0, 7], len(as_json.ties)) == ("AMD Instinct MI250X", Tie("xgmi"), 28)


def test_amd_smi_finds_devices_by_their_number() -> None:
    """Links in any order mean the same."""
    machine: Machine = read("amd_smi_topology.json")
    assert (machine.ties[0, 1], machine.ties[1, 2]) == (Tie("xgmi"), Tie("pcie", far=True))
    value = json.loads(dump("amd_smi_topology.json"))
    for one in value:
        one["links"].reverse()
    assert read_dump(json.dumps(value), "x.json")[1] == machine
    static: Machine = read("amd_smi_static.json")
    assert static.names == ("AMD Instinct MI210",) * 4
    assert static.memory_gib == (65520 / 1024,) * 4
    assert static.pcie == ((4, 16),) * 4


@pytest.mark.parametrize(
    ("gres", "devices"),
    [
        ("gpu:h100:8", [("h100", 8)]),
        ("gpu:h100:8(S:0-1)", [("h100", 8)]),
        ("gpu:8", [("", 8)]),
        ("gpu", [("", 1)]),
        ("gpu:a100:4(S:0),gpu:v100:2(S:1),shard:8", [("a100", 4), ("v100", 2)]),
        ("nvme:1,gpu:nvidia_h100_80gb_hbm3:8(S:0-1,3)", [("nvidia_h100_80gb_hbm3", 8)]),
    ],
)
def test_generic_resources_of_slurm(gres: str, devices: list[tuple[str, int]]) -> None:
    """Types, counts and sockets of Gres; other resources are no devices."""
    found = read_dump(f"NodeName=n1 Arch=x86_64 Gres={gres} State=IDLE ThreadsPerCore=2\n", "x")[1]
    assert isinstance(found, Nodes)
    assert [(one.name, one.count) for one in found.nodes[0].devices] == devices


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ("NodeName=n1 Gres=(null) State=IDLE", "dump: has no node with devices that is up (no Gres=gpu:...)"),
        ("NodeName=n1 Gres=gpu:h100:8 State=DOWN*", "dump: has no node with devices that is up (nodes that are down"),
        ("\nNodeName=n1 Gres=gpu:h100:8", "dump:2 n1: has no State; the list is cut off, take it anew with scontrol"),
        ("NodeName=n1 Gres=gpu:a100_1g.5gb:7 State=IDLE", "dump:1 n1: has MIG slices (a100_1g.5gb), which are not"),
        ("NodeName=n1 Gres=gpu:h100:x State=IDLE", "dump:1 n1: has 'gpu:h100:x' in Gres, which is not read"),
    ],
)
def test_nodes_that_cannot_be_used_are_told(record: str, says: str) -> None:
    """Each with its line and name."""
    assert problem(record).startswith(says)


def test_nodes_of_slurm_that_are_down_are_left_out() -> None:
    """16 and 4 nodes are up; one is down, whose reason looks like a field; one has no devices."""
    nodes: Nodes = read("slurm_nodes.txt")
    assert [node.name for node in nodes.nodes] == [*(f"h{n:02d}" for n in range(1, 17)), "a1", "a2", "a3", "a4"]
    assert nodes.notes == ("nodes that are down are left out: 1",)


@pytest.mark.parametrize("name", ["slurm_topology.txt", "slurm_topology.conf", "slurm_topology.yaml"])
def test_switches_of_slurm(name: str) -> None:
    """Leaves come first, and higher switches hold what is below them."""
    topology: Topology = read(name)
    assert [level.name for level in topology.levels] == ["leaf", "spine", "core"][: 3 if name.endswith("txt") else 2]
    assert max(len(part) for part in topology.levels[-1].parts) in {20, 22}


def test_blocks_of_slurm() -> None:
    """Blocks are a level, and what NVLink may join; larger planned sizes join neighbours."""
    text = dump("slurm_gb200_blocks.txt") + "BlockSizes=18,36\n"
    topology = read_dump(text, "x")[1]
    assert isinstance(topology, Topology)
    assert [(level.name, [len(part) for part in level.parts]) for level in topology.levels] == [
        ("block", [18, 18]),
        ("block-of-36", [36]),
    ]
    assert len(topology.domains) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "dump: has switches below themselves: a, b"),
        ("SwitchName=a Nodes=n[1-\n", "dump:1 nodes: 'n[1-' is no list of nodes; write names such as node[01-03,07]"),
        ("SwitchName=a Nodes=n[3-1]\n", "dump:1 nodes: [3-1] has '3-1', which is no range of numbers such as 01-03"),
        ("SwitchName=a Nodes=n[1-999999999]\n", "dump:1 nodes: stands for more than 200,000 nodes; check its ranges"),
        ("SwitchName=a\n", "dump:1: has neither Nodes nor Switches; the topology is cut off, take it anew"),
        ("- topology: t\n  tree:\n    switches: 3\n", "dump:3 [0].tree.switches: should be a list that is not empty"),
        ("- topology: t\n  block:\n    blocks:\n    - block: b\n", "dump:4 [0].block.blocks[0].nodes: is missing"),
    ],
)
def test_broken_topologies_are_placed(text: str, says: str) -> None:
    """Each message has the line."""
    assert problem(text).startswith(says)


def test_nodes_of_kubernetes() -> None:
    """Shared devices count once, slices and cordoned nodes not at all; zones and NVLink cliques are kept."""
    nodes: Nodes = read("kubectl_nodes.json")
    found = [(one.name, one.count, round(one.memory_gib)) for node in nodes.nodes for one in node.devices]
    assert found == [
        *[("NVIDIA-H100-80GB-HBM3", 8, 80)] * 6,
        *[("Tesla-T4", 4, 15)] * 2,
        ("AMD_Instinct_MI300X_OAM", 8, 192),
    ]
    assert nodes.topology is not None
    assert [len(part) for part in nodes.topology.levels[0].parts] == [4, 2]
    racks: Nodes = read("kubectl_gb200.json")
    assert racks.topology is not None
    assert [len(part) for part in racks.topology.domains] == [18, 18]


def test_a_node_of_kubernetes_without_labels_is_placed() -> None:
    """The line is that of the node."""
    text = '{"kind": "List",\n "items": [\n  {"kind": "Node", "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]}'
    assert problem(text, "n.json").startswith("n.json:3 items[0]: has devices that no label names; label it nvidia.com")


def test_a_list_of_many_nodes_is_read() -> None:
    """Nodes with dozens of images make lists larger than a specification may be."""
    node = json.loads(dump("kubectl_nodes.json"))["items"][0]
    node["status"]["images"] = [{"names": ["registry.example/image:" + "x" * 300]}] * 50
    nodes = read_dump(json.dumps({"kind": "List", "items": [node] * 300}), "nodes.json")[1]
    assert isinstance(nodes, Nodes)
    assert len(nodes.nodes) == 300


def test_offers_of_skypilot() -> None:
    """Instances with accelerators and their memory; processors alone are no offer."""
    offers: Offers = read("skypilot_lambda.csv")
    first = offers.offers[0]
    assert (first.instance, first.devices.name, first.devices.count, first.devices.memory_gib, first.price) == (
        "gpu_1x_a10",
        "A10",
        1,
        24.0,
        0.75,
    )
    assert [one.devices.name for one in offers.offers].count("A100-40GB") == 1
    assert len(offers.offers) == 6


def test_literals_of_skypilot_are_never_run() -> None:
    """GpuInfo is read as a literal; anything else in it is nothing."""
    header = "InstanceType,AcceleratorName,AcceleratorCount,Price,Region,GpuInfo\n"
    for info in ("\"__import__('os').abort()\"", '"' + "[" * 3000 + '"', '"' + "9" * 5000 + '"', '"{1: 2}[1]"'):
        offers = read_dump(f"{header}x,H100,8,8.0,r,{info}\n", "x")[1]
        assert isinstance(offers, Offers)
        assert offers.offers[0].devices.memory_gib == 0.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "dump: is empty; the tool may have failed, run it by itself to see"),
        (
            "| NVIDIA-SMI 550.127.05   Driver Version: 550 |",
            "dump: is the overview of nvidia-smi; give nvidia-smi topo",
        ),
        ("GPU 0: NVIDIA H100 (UUID: GPU-1)", "dump: is nvidia-smi -L, which lacks memory and links; give"),
        ("NAME    STATUS   ROLES    AGE", "dump: is a table of kubectl, which lacks the devices; give kubectl get"),
        ("PARTITION AVAIL  TIMELIMIT", "dump: is sinfo, which lacks the devices; give scontrol -o show node"),
        ("groups:\n- device: h100\n", "dump: is a cluster file already; there is nothing to import"),
        ("hello", "dump: is none of the dumps that are read, or its beginning is missing; these are: nvidia-smi"),
    ],
)
def test_other_texts_are_told_what_to_give(text: str, says: str) -> None:
    """What is often given instead has its own remedy."""
    assert problem(text).startswith(says)
