"""Devices that a dump does not name, and adapters without rates: what is taken for them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from machines.dumps import dump
from planner.errors import SpecError
from planner.specs.discovery import Told, cluster_from_dumps


def listed(**gres: str) -> tuple[str, str]:
    """Return a list of Slurm, of nodes by name with what their Gres has."""
    return "".join(f"NodeName={name} Gres=gpu:{devices} State=IDLE\n" for name, devices in gres.items()), "list"


def joined(*texts: tuple[str, str], **told: Any) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Return device, nodes and link inside a node of each group, and the notes."""
    notes: list[str] = []
    groups = cluster_from_dumps(texts, Told(**told), notes.append)["groups"]
    return [(one["device"], one["nodes"], one["intra_node"]) for one in groups], notes


TOPO = (dump("nvidia_topo_h100.txt").replace("NV18", "NV8"), "topo")
"""Eight devices without names, with 8 of the 12 NVLinks of an A100, so that its link is no usual one."""
EIGHT_NVLINKS = {"link": "nvlink3", "bandwidth_gbyte_per_s": 200.0}
UNLIKE = listed(a1="a100:8", a2="a100:8", h1="h100:8")


def test_a_matrix_without_names_is_of_the_nodes_with_as_many() -> None:
    """All nodes with eight are A100; the H100 has four. The list says what the devices of the matrix are."""
    groups, notes = joined(listed(a1="a100:8", a2="a100:8", h1="h100:4"), TOPO)
    assert groups == [("a100-sxm-80gb", 2, EIGHT_NVLINKS), ("h100-sxm-80gb", 1, {"link": "nvlink4"})]
    assert notes[:2] == [
        "topo does not name its devices; it is taken to be of a node of list with as many, 8 x a100-sxm-80gb",
        "a100 is taken as a100-sxm-80gb; other devices have that name too, so check `device`",
    ]
    assert joined(TOPO, listed(a1="a100:8", a2="nvidia_a100-sxm4-80gb:8"))[0] == [("a100-sxm-80gb", 2, EIGHT_NVLINKS)]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (
            UNLIKE,
            (
                "topo: does not name its devices, and list has nodes with as many of 8 x a100-sxm-80gb and of 8 x "
                "h100-sxm-80gb; tell with --device which of them the dump is of"
            ),
        ),
        (
            listed(n1="a100:4,gpu:h100:4"),
            (
                "topo: does not name its devices, and list has nodes with as many of 4 x a100-sxm-80gb + 4 x "
                "h100-sxm-80gb; add a dump of the same machine that does"
            ),
        ),
        (
            listed(a1="a100:4", m1="mi300x:8"),
            "topo: shows 8 devices of nvidia, and list has no node with as many; dump one it has",
        ),
        (
            listed(n1="8"),
            "list: does not name its devices; add a dump that does, or --device NAME (planner show devices)",
        ),
    ],
)
def test_a_matrix_that_may_be_of_several_nodes_is_refused(nodes: tuple[str, str], says: str) -> None:
    """What is possible, and whether --device can tell."""
    with pytest.raises(SpecError) as caught:
        joined(nodes, TOPO)
    assert str(caught.value) == says


def test_an_option_names_the_dump_and_no_node_that_has_a_name() -> None:
    """The H100 stays one; the matrix is of the device that the option names, whichever it is."""
    groups, _ = joined(UNLIKE, TOPO, device="a100-sxm-80gb")
    assert groups == [("a100-sxm-80gb", 2, EIGHT_NVLINKS), ("h100-sxm-80gb", 1, {"link": "nvlink4"})]
    groups, _ = joined(UNLIKE, TOPO, device="h100-sxm-80gb")
    assert groups[0] == ("a100-sxm-80gb", 2, {"link": "nvlink3"})
    assert groups[1] == ("h100-sxm-80gb", 1, {"link": "nvlink4", "bandwidth_gbyte_per_s": 200.0})


def test_an_option_names_what_is_unknown_or_means_several() -> None:
    """No name, a house's own and a short one take it; the name of another device does not."""
    nodes = listed(n1="8", n2="bignode:8", n3="h100:8", n4="H100-PCIe:8", n5="a100:8")
    groups, _ = joined(nodes, device="h100-sxm-96gb")
    assert [one[:2] for one in groups] == [("h100-sxm-96gb", 3), ("h100-pcie-80gb", 1), ("a100-sxm-80gb", 1)]
    with pytest.raises(SpecError) as caught:
        joined(listed(h1="h100:8"), device="a100-sxm-40gb")
    assert str(caught.value) == (
        "--device: is a100-sxm-40gb, and the dumps name all devices: h100-sxm-80gb; leave the option out"
    )


def test_nodes_without_names_are_like_the_machine_that_was_dumped() -> None:
    """Slurm's ``gpu:8`` is what the dump of a node with eight devices names."""
    machine = [(dump(name), name) for name in ("nvidia_topo_h100.txt", "nvidia_smi_h100.xml")]
    groups, notes = joined(listed(n1="8", n2="8"), *machine)
    assert groups == [("h100-sxm-80gb", 2, {"link": "nvlink4"})]
    assert notes[0] == "list does not name its devices; 8 of a node are taken to be those of the machine"


@pytest.mark.parametrize(
    ("adapters", "block", "says"),
    [
        (1, {}, "no network rates but shows 1 adapter; ib-hdr100, usual for a100-pcie-80gb, is assumed, 1 x 100"),
        (
            2,
            {"rails": 2},
            "no network rates but shows 2 adapters; ib-hdr100, usual for a100-pcie-80gb, is assumed, 2 x 100",
        ),
        (
            3,
            {"rails": 2},
            (
                "no network rates, and 1 of its 3 adapters is taken to be for other uses, as 2 devices use 2; "
                "ib-hdr100, usual for a100-pcie-80gb, is assumed, 2 x 100"
            ),
        ),
    ],
)
def test_adapters_that_were_seen_are_rails(adapters: int, block: dict[str, Any], says: str) -> None:
    """As many as were seen, up to one for each device; the note has the number of the file."""
    names = "".join(f" NIC{number}" for number in range(adapters))
    codes = " SYS" * adapters
    topo = f"     GPU0 GPU1{names} CPU Affinity\nGPU0 X PHB{codes} 0-31\nGPU1 PHB X{codes} 0-31\n"
    notes: list[str] = []
    record = cluster_from_dumps([(topo, "topo")], Told(device="a100-pcie-80gb"), notes.append)
    assert record["groups"][0]["inter_node"] == {"network": "ib-hdr100", **block}
    assert notes[-1] == f"groups[0].inter_node: the dump has {says} Gbit/s a node: give --network"
