"""Clusters from dumps: exact groups, links and tiers, what is said to be assumed, and what is refused."""

# ruff: noqa: S311 (cases are drawn, not secrets)

from __future__ import annotations

import random
from typing import Any

import pytest

from machines.dumps import FILES, dump
from planner.errors import SpecError
from planner.loader import dump_yaml, load
from planner.machines import READERS
from planner.specs import catalog
from planner.specs.cluster import cluster_from_document
from planner.specs.discovery import Told, cluster_from_dumps
from planner.specs.discovery.links import BRIDGES, LANES, PCIE_OF

ONE_NODE = "groups[0].nodes: the dump is of one machine, so one node is written; give --nodes"


def imported(*names: str, **told: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the record of some dumps, and the notes."""
    notes: list[str] = []
    record = cluster_from_dumps([(dump(name), name) for name in names], Told(**told), notes.append)
    return record, notes


def problem(*names: str, **told: Any) -> str:
    """Return what is said of dumps that must be refused."""
    with pytest.raises(SpecError) as caught:
        imported(*names, **told)
    return str(caught.value)


def group(device: str, nodes: int, devices: int, intra: dict[str, Any], inter: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": device,
        "device": device,
        "nodes": nodes,
        "devices_per_node": devices,
        "intra_node": intra,
        "inter_node": inter,
    }


H100 = ("nvidia_topo_h100.txt", "nvidia_smi_h100.xml")
A100_PCIE = ("nvidia_topo_a100_pcie.txt", "nvidia_query_a100_pcie.csv")
NDR, HDR = {"network": "ib-ndr"}, {"network": "ib-hdr"}

MACHINES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "switched": (
        H100,
        {"nodes": 16, "network": "8x400"},
        group("h100-sxm-80gb", 16, 8, {"link": "nvlink4"}, {"rails": 8, "rail_gbit_per_s": 400}),
    ),
    "either order, a name": (
        H100[::-1],
        {"network": "ib-ndr"},
        group("h100-sxm-80gb", 1, 8, {"link": "nvlink4"}, NDR),
    ),
    "pairs and sockets": (
        A100_PCIE,
        {},
        group(
            "a100-pcie-80gb",
            1,
            8,
            {
                "link": "pcie4-no-p2p",
                "levels": [
                    {"name": "nvlink-pair", "devices": 2, "link": "nvlink3-bridge"},
                    {"name": "socket", "devices": 4, "link": "pcie4"},
                ],
            },
            {"network": "ib-hdr100", "rails": 4},
        ),
    ),
    "no peer access": (
        ("nvidia_topo_4090.txt",),
        {"device": "RTX 4090"},
        group("rtx4090-24gb", 1, 8, {"link": "pcie4-no-p2p"}, {"network": "ethernet-10", "rails": 2}),
    ),
    "two cards": (
        ("nvidia_topo_2x5090.txt",),
        {"device": "rtx5090-32gb"},
        group("rtx5090-32gb", 1, 2, {"link": "pcie5-no-p2p"}, {"network": "ethernet-10"}),
    ),
    "a ring through a mesh": (
        ("nvidia_topo_dgx1.txt",),
        {"device": "V100"},
        group("v100-sxm-16gb", 1, 8, {"link": "nvlink2"}, {"network": "ib-edr", "rails": 4}),
    ),
    "pairs of no neighbours": (
        ("nvidia_topo_a6000_crossed.txt", "nvidia_query_bare.csv"),
        {},
        group("rtxa6000-48gb", 1, 4, {"link": "pcie4"}, {"network": "ethernet-10"}),
    ),
    "nccl": (
        ("nccl_h100.xml",),
        {"nodes": 4},
        group("h100-sxm-80gb", 4, 8, {"link": "nvlink4"}, {"rails": 8, "rail_gbit_per_s": 400}),
    ),
    "xgmi": (
        ("rocm_smi_mi300x.txt",),
        {},
        group("mi300x-192gb", 1, 8, {"link": "xgmi3"}, {"network": "roce-400"}),
    ),
    "dies": (
        ("rocm_smi_mi250x.json",),
        {},
        group("mi250x-128gb", 1, 4, {"link": "xgmi2"}, {"network": "slingshot-200"}),
    ),
    "xgmi in pairs": (
        ("amd_smi_static.json", "amd_smi_topology.json"),
        {},
        group(
            "mi210-64gb",
            1,
            4,
            {
                "link": "pcie4-no-p2p",
                "levels": [{"name": "xgmi-pair", "devices": 2, "link": "xgmi2-bridge"}],
            },
            {"network": "ib-hdr100"},
        ),
    ),
    "sockets alone": (
        ("rocm_smi_pcie.txt",),
        {"device": "mi210"},
        group(
            "mi210-64gb",
            1,
            4,
            {"link": "pcie4-no-p2p", "levels": [{"name": "socket", "devices": 2, "link": "pcie4"}]},
            {"network": "ib-hdr100"},
        ),
    ),
    "an instance": (
        ("skypilot_lambda.csv",),
        {"instance": "gpu_8x_a100", "nodes": 2},
        {**group("a100-sxm-40gb", 2, 8, {"link": "nvlink3"}, HDR), "price_per_device_hour": 1.29},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_one_group(name: str) -> None:
    """Device, counts, link inside the node with its levels, and network."""
    files, told, wanted = MACHINES[name]
    assert imported(*files, **told)[0] == {"groups": [wanted]}


def test_what_no_dump_tells_is_said_with_its_key() -> None:
    """Number of nodes, network, and the order in which crossed pairs would be neighbours."""
    assert imported("nvidia_topo_a6000_crossed.txt", "nvidia_query_bare.csv")[1] == [
        ONE_NODE,
        (
            "groups[0].intra_node: nvlink joins devices that are no neighbours, which is left out; with "
            "CUDA_VISIBLE_DEVICES=0,2,1,3 they are: import again then"
        ),
        (
            "groups[0].inter_node: the dump has no network rates; ethernet-10, usual for rtxa6000-48gb, is assumed, "
            "1 x 10 Gbit/s a node: give --network"
        ),
    ]


def test_what_was_told_is_not_noted() -> None:
    """Nodes and a network by its name leave nothing to assume."""
    assert imported(*H100, nodes=16, network="ib-ndr")[1] == []


def test_unlike_cards_share_their_node() -> None:
    """Two groups on the same nodes, joined by the slower PCI Express: one slot is of generation 3."""
    record, _ = imported("nvidia_smi_mixed.xml")
    ethernet = {"network": "ethernet-10"}
    assert record == {
        "groups": [
            {**group("rtx3080-10gb", 1, 2, {"link": "pcie4-no-p2p"}, ethernet), "shared_nodes": "nodes-1"},
            {**group("rtx4090-24gb", 1, 2, {"link": "pcie3-no-p2p"}, ethernet), "shared_nodes": "nodes-1"},
        ],
        "links": [
            {
                "between": ["rtx3080-10gb", "rtx4090-24gb"],
                "transport": "node",
                "bandwidth_gbyte_per_s": 15.75,
                "efficiency": 0.35,
                "latency_us": 20.0,
            }
        ],
    }


def test_fewer_links_are_less_bandwidth() -> None:
    """16 of 18 NVLinks that work carry 16 x 25 GB/s; PCI Express at 8 lanes half of 16."""
    topo = dump("nvidia_topo_h100.txt").replace("NV18", "NV16")
    notes: list[str] = []
    texts = [(topo, "topo"), (dump("nvidia_smi_h100.xml"), "xml")]
    record = cluster_from_dumps(texts, Told(), notes.append)
    assert record["groups"][0]["intra_node"] == {"link": "nvlink4", "bandwidth_gbyte_per_s": 400.0}
    xml = dump("nvidia_smi_h100.xml").replace(">16x<", ">8x<").replace("NVIDIA H100 80GB HBM3", "NVIDIA L40S")
    record = cluster_from_dumps([(xml.replace("81559", "46068"), "xml")], Told(), notes.append)
    assert record["groups"][0]["device"] == "l40s-48gb"
    assert record["groups"][0]["intra_node"] == {"link": "pcie5", "bandwidth_gbyte_per_s": 31.5}


def test_memory_tells_devices_of_one_name_apart() -> None:
    """40 GiB make an A100 the small one; 64 GiB no catalogue's, so that they are written."""
    rows = {40960: "a100-sxm-40gb", 81920: "a100-sxm-80gb", 65536: {"device": "a100-sxm-80gb", "memory_gib": 64.0}}
    for mib, device in rows.items():
        text = f"name, memory.total [MiB]\nNVIDIA A100-SXM4-80GB, {mib} MiB\n"
        record = cluster_from_dumps([(text, "csv")], Told(), lambda _: None)
        assert record["groups"][0]["device"] == device


def test_a_flat_topology_has_no_tiers() -> None:
    """It says that no node is nearer than another."""
    texts = [(dump("slurm_nodes.txt"), "list"), ("- topology: t\n  flat: true\n", "topology.yaml")]
    record = cluster_from_dumps(texts, Told(), lambda _: None)
    assert [one.get("tiers") for one in record["groups"]] == [None, None]


def test_a_list_whose_end_is_missing_is_noted() -> None:
    """Lists end with the end of a line; without it nothing else tells that they were cut off."""
    notes: list[str] = []
    cluster_from_dumps([(dump("slurm_nodes.txt")[:5000], "list")], Told(), notes.append)
    assert "the last line has no end; if the list was cut off there, take it anew" in notes


def test_two_names_of_one_device_are_one_group() -> None:
    """A virtual function has the row of its device."""
    text = dump("rocm_smi_mi300x.txt").replace("MI300X OAM", "MI300X VF", 3)
    record = cluster_from_dumps([(text, "rocm")], Told(), lambda _: None)
    assert [(one["device"], one["devices_per_node"]) for one in record["groups"]] == [("mi300x-192gb", 8)]


def test_slurm_with_switches_a_node_and_prices() -> None:
    """Groups by device, leaves and pods as tiers, links of the node that was dumped, prices of the cheapest offer."""
    record, notes = imported("skypilot_lambda.csv", *H100, "slurm_topology.txt", "slurm_nodes.txt")
    assert record == {
        "groups": [
            {
                **group("h100-sxm-80gb", 16, 8, {"link": "nvlink4"}, NDR),
                "tiers": [
                    {"name": "leaf", "nodes": 4, "oversubscription": 1.0},
                    {"name": "spine", "nodes": 8, "oversubscription": 1.0},
                ],
                "price_per_device_hour": 2.99,
            },
            {
                **group("a100-sxm-80gb", 4, 8, {"link": "nvlink3"}, HDR),
                "tiers": [{"name": "leaf", "nodes": 2, "oversubscription": 1.0}],
                "price_per_device_hour": 1.79,
            },
        ]
    }
    assert "nodes that are down are left out: 1" in notes
    assert "groups[1].intra_node: no dump shows it; nvlink3, usual for a100-sxm-80gb, is assumed" in notes
    assert not any(note.startswith("groups[0].intra_node") for note in notes)


def test_a_node_that_was_dumped_tells_what_a_short_name_means() -> None:
    """Slurm's a100 is the card of the dump where as many are in the node, and the usual one elsewhere."""
    listed = "".join(f"NodeName=n{n} Gres=gpu:a100:{8 if n else 4} State=IDLE\n" for n in range(3))
    texts = [(listed, "list"), *((dump(name), name) for name in A100_PCIE)]
    notes: list[str] = []
    record = cluster_from_dumps(texts, Told(), notes.append)
    found = [(one["device"], one["nodes"], one["devices_per_node"]) for one in record["groups"]]
    assert found == [("a100-sxm-80gb", 1, 4), ("a100-pcie-80gb", 2, 8)]
    assert [level["devices"] for level in record["groups"][1]["intra_node"]["levels"]] == [2, 4]
    assert notes[0] == "a100 is taken as a100-sxm-80gb; other devices have that name too, so check `device`"


def test_a_matrix_and_xml_may_come_in_one_stream() -> None:
    """Both commands of one session are two dumps, whose lines are counted together."""
    both = "".join(map(dump, H100))
    record = cluster_from_dumps([(both, "<stdin>")], Told(), lambda _: None)
    assert record == imported(*H100)[0]
    with pytest.raises(SpecError) as caught:
        cluster_from_dumps([(both[:-20], "<stdin>")], Told(), lambda _: None)
    last = both[:-20].count("\n") + 1
    assert str(caught.value).startswith(f"<stdin>:{last}: is not whole XML: unclosed token")


@pytest.mark.parametrize("name", ["slurm_topology.conf", "slurm_topology.yaml"])
def test_other_notations_of_switches_mean_the_same(name: str) -> None:
    """Two leaves of eight; the A100 are below one switch, which takes nothing away."""
    record, notes = imported("slurm_nodes.txt", name)
    assert any(note.startswith("h100 is taken as h100-sxm-80gb") for note in notes)
    assert [one.get("tiers") for one in record["groups"]] == [
        [{"name": "leaf", "nodes": 8, "oversubscription": 1.0}],
        None,
    ]


def test_nodes_of_several_lines_are_read() -> None:
    """Two L40S nodes of four, with the usual network of four rails."""
    record, _ = imported("slurm_node_multiline.txt")
    assert record == {"groups": [group("l40s-48gb", 2, 4, {"link": "pcie4"}, {"network": "roce-100"})]}


@pytest.mark.parametrize("files", [("slurm_gb200_nodes.txt", "slurm_gb200_blocks.txt"), ("kubectl_gb200.json",)])
def test_racks_of_nvlink_are_nodes(files: tuple[str, ...]) -> None:
    """Two racks of 18 nodes of four are two nodes of 72, be they blocks of Slurm or cliques of Kubernetes."""
    record, _ = imported(*files)
    assert record == {"groups": [group("gb200-186gb", 2, 72, {"link": "nvl72"}, {"network": "ib-ndr-nvl72"})]}


def test_nodes_of_racks_alone_have_their_share_of_the_network() -> None:
    """Without blocks the nodes stay nodes of four, with four rails each, which is said."""
    record, notes = imported("slurm_gb200_nodes.txt")
    inter = {"network": "ib-ndr-nvl72", "rails": 4}
    assert record == {"groups": [group("gb200-186gb", 36, 4, {"link": "nvl72"}, inter)]}
    assert (
        "nodes of gb200-186gb are joined by NVLink in racks, which the list does not show: describe a rack as one node"
        in notes
    )


def test_kubernetes_groups_and_zones() -> None:
    """Groups by product; the larger zone is a tier; shared and cordoned devices as they count."""
    record, notes = imported("kubectl_nodes.json")
    assert record == {
        "groups": [
            {
                **group("h100-sxm-80gb", 6, 8, {"link": "nvlink4"}, NDR),
                "tiers": [{"name": "zone", "nodes": 4, "oversubscription": 1.0}],
            },
            group("t4-16gb", 2, 4, {"link": "pcie3"}, {"network": "ethernet-25"}),
            group("mi300x-192gb", 1, 8, {"link": "xgmi3"}, {"network": "roce-400"}),
        ]
    }
    assert "groups[0].tiers: a zone has 2 to 4 of these nodes; 4 is written" in notes
    assert "SECRET" not in repr((record, notes))


@pytest.mark.parametrize(
    ("files", "told", "says"),
    [
        (
            ("nvidia_topo_h100.txt",),
            {},
            "nvidia_topo_h100.txt: does not name its devices; add a dump that does, or --device",
        ),
        (
            ("nvidia_topo_h100.txt", "nvidia_smi_mixed.xml"),
            {},
            "nvidia_smi_mixed.xml: shows 4 devices and nvidia_topo_h100.txt 8; take all dumps on one machine",
        ),
        (
            ("nvidia_smi_h100.xml", "nvidia_query_a100_pcie.csv"),
            {},
            "nvidia_query_a100_pcie.csv: names other devices than nvidia_smi_h100.xml; take all dumps on one machine",
        ),
        (
            ("nvidia_topo_h100.txt", "rocm_smi_mi300x.txt"),
            {},
            "rocm_smi_mi300x.txt: is of amd and nvidia_topo_h100.txt of nvidia; take all dumps on one machine",
        ),
        (
            H100[:1] * 2,
            {},
            "nvidia_topo_h100.txt: tells the same as nvidia_topo_h100.txt; import one machine at a time",
        ),
        (
            ("slurm_topology.txt",),
            {},
            "slurm_topology.txt: tells how nodes are joined, not what is in them; add scontrol",
        ),
        (
            (*H100, "slurm_topology.txt"),
            {},
            "slurm_topology.txt: names nodes that no list has; add scontrol -o show node",
        ),
        (
            ("slurm_gb200_nodes.txt", "slurm_topology.txt"),
            {},
            "slurm_topology.txt: has none of the nodes of slurm_gb200_nodes.txt; give both of one system",
        ),
        (
            ("slurm_nodes.txt", *A100_PCIE),
            {},
            "nvidia_topo_a100_pcie.txt: is of a machine with 8 x a100-pcie-80gb, and slurm_nodes.txt has no such node",
        ),
        (("slurm_nodes.txt",), {"nodes": 3}, "--nodes: slurm_nodes.txt lists the nodes; leave the option out"),
        (("slurm_nodes.txt", "kubectl_nodes.json"), {}, "kubectl_nodes.json: is of the same kind as slurm_nodes.txt"),
        (H100, {"network": "ib-nrd"}, "--network: no network is called 'ib-nrd'; did you mean ib-ndr"),
        (
            H100,
            {"network": "0x400"},
            "--network: is '0x400', which carries nothing; both numbers should be more than 0",
        ),
        (
            H100,
            {"device": "mi300x"},
            "--device: is mi300x-192gb, and the dumps name all devices: h100-sxm-80gb; leave the option out",
        ),
        (
            H100[:1],
            {"device": "mi300x"},
            "--device: mi300x-192gb is of amd, and the dump of nvidia; name what the machine has",
        ),
        (H100, {"device": "h1000"}, "--device: no device is called 'h1000'; did you mean h100"),
        (H100, {"instance": "x"}, "--instance: is for a catalogue of prices alone; leave the option out"),
        (
            ("skypilot_lambda.csv",),
            {},
            "skypilot_lambda.csv: has many kinds of machines; name one with --instance: gpu_1x",
        ),
        (
            ("skypilot_lambda.csv",),
            {"instance": "gpu_8x_h100"},
            "--instance: skypilot_lambda.csv has no 'gpu_8x_h100'; did you mean gpu_8x_a100 or gpu_8x_h100_sxm5?",
        ),
        (("skypilot_lambda.csv",), {"instance": "tpu-v3-32"}, "skypilot_lambda.csv: no device is called 'tpu-v3-32'"),
    ],
)
def test_what_does_not_fit_together_is_refused(files: tuple[str, ...], told: dict[str, Any], says: str) -> None:
    """One sentence with the file and the remedy."""
    assert problem(*files, **told).startswith(says)


def test_an_unknown_device_has_a_remedy() -> None:
    """The nearest names, and that its figures may be written in full."""
    text = "name, memory.total [MiB]\nNVIDIA H1000 80GB HBM9, 81559 MiB\n"
    with pytest.raises(SpecError) as caught:
        cluster_from_dumps([(text, "q.csv")], Told(), lambda _: None)
    assert str(caught.value) == (
        "q.csv: no device is called 'NVIDIA H1000 80GB HBM9'; did you mean h100-sxm-80gb or h100-pcie-80gb or "
        "h100-nvl-94gb or h100-sxm-96gb; name its row with --device, or the nearest one and then write its own figures "
        "in full in the cluster file, as a block under device"
    )


def test_problems_of_all_dumps_are_told_together() -> None:
    """Two broken files are two problems."""
    texts = [("hello", "a"), ("<nvidia_smi_log>", "b")]
    with pytest.raises(SpecError) as caught:
        cluster_from_dumps(texts, Told(), lambda _: None)
    assert [found.place for found in caught.value.problems] == ["a", "b:1"]


def test_tables_name_rows_of_the_catalogue() -> None:
    """Links, and chips of bridges, are those of the catalogue; every usual NVLink has its lanes."""
    links = {link.name for link in catalog.links()}
    assert {*LANES, *BRIDGES.values(), *PCIE_OF} <= links
    assert {name for name in links if name.startswith("nv")} == set(LANES)
    assert set(BRIDGES) <= {row.device.name.split("-")[0] for row in catalog.device_rows()}


def outcome(text: str) -> str:
    """Return what comes of a text: the file, or the problems; anything else is raised."""
    try:
        told = Told(device="h100-sxm-80gb" if "GPU0" in text else None)
        record = cluster_from_dumps([(text, "dump")], told, lambda _: None)
    except SpecError as error:
        return str(error)
    cluster_from_document(load(dump_yaml(record), "cluster.yaml"))
    return dump_yaml(record)


@pytest.mark.parametrize("name", FILES)
def test_a_dump_cut_off_anywhere_is_no_bug(name: str) -> None:
    """Cut at any length (in long files at 400 lengths) a dump is a valid cluster still, or a problem."""
    text = dump(name)
    cuts = range(len(text)) if len(text) <= 700 else sorted(random.Random(0).sample(range(len(text)), 400))
    for cut in cuts:
        assert outcome(text[:cut])


@pytest.mark.parametrize("name", FILES)
def test_a_garbled_dump_is_no_bug(name: str) -> None:
    """Characters that change, lines that go and words that repeat leave a valid cluster, or a problem."""
    chance = random.Random(name)
    text = dump(name)
    for _ in range(150):
        garbled = list(text)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(garbled))
            garbled[at : at + chance.randint(0, 6)] = chance.choice(
                ["", "X", "\n", "9" * 12, "-", "[", "{", '"', "é", "\t"]
            )
        assert outcome("".join(garbled))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_recognition_needs_no_whole_text(reader: Any) -> None:
    """Nothing is raised by asking."""
    for name in FILES:
        text = dump(name)
        for cut in range(0, len(text), 97):
            assert reader.recognises(text[:cut]) in {True, False}
