"""The catalogue and the example clusters are data: complete, plausible, sourced, and free of dangling names."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.domain.framework import Capability, Framework
from planner.domain.plan import SEARCHED
from planner.schedules import SCHEDULES

ROOT = Path(__file__).parents[2]
CATALOG = ROOT / "planner" / "catalog"


def read(path: Path) -> dict[str, Any]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


DEVICES = read(CATALOG / "devices.yaml")
LINKS = read(CATALOG / "links.yaml")["links"]
NETWORKS = read(CATALOG / "links.yaml")["networks"]
FRAMEWORK_ROWS = read(CATALOG / "frameworks.yaml")
FRAMEWORKS = {name: row for name, row in FRAMEWORK_ROWS.items() if "like" not in row}
LIKE = {name: row for name, row in FRAMEWORK_ROWS.items() if "like" in row}
OPTIMIZERS = read(CATALOG / "optimizers.yaml")
CLUSTERS = {path.stem: read(path) for path in sorted((ROOT / "cluster_specs").glob("*.yaml"))}

DEVICE_KEYS = {
    "vendor",
    "aliases",
    "memory_gib",
    "memory_bandwidth_gbyte_per_s",
    "fp32_tflops",
    "matmul_efficiency",
    "attention_efficiency",
    "fused_attention",
    "default_intra_node",
    "default_inter_node",
    "source",
}
OTHER_PRECISIONS = {"bf16_tflops", "fp16_tflops", "fp8_tflops", "fp4_tflops", "fp8_efficiency", "fp4_efficiency"}
SUFFIXES = {
    "launch_floor": "_us",
    "launch_edge": "_us",
    "launch_tensor": "_us",
    "launch_tensor_pipeline": "_us",
    "collective_latency": "_us",
    "hop_latency": "_us",
    "step_overhead": "_ms",
    "outside_allocator": "_gib",
}
GROUP_KEYS = {"name", "device", "nodes", "devices_per_node", "intra_node", "inter_node"}
OTHER_GROUP_KEYS = {"tiers", "profile", "shared_nodes", "host", "price_per_device_hour", "mtbf_hours"}
LINK_KEYS = {"between", "transport", "efficiency", "latency_us"}
BANDWIDTHS = ({"bandwidth_gbit_per_s"}, {"bandwidth_gbyte_per_s"})


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_has_every_key_and_a_source(name: str) -> None:
    row = DEVICES[name]
    assert set(row) >= DEVICE_KEYS
    assert set(row) <= DEVICE_KEYS | OTHER_PRECISIONS
    assert {"bf16_tflops", "fp16_tflops"} & set(row)
    assert row["source"].strip()


@pytest.mark.parametrize("name", DEVICES)
def test_the_figures_of_a_device_are_plausible_dense_ones(name: str) -> None:
    """Half the width is at most 2.2 times as fast, fp4 4 times fp8: a sparse rate beside a dense one fails."""
    row = DEVICES[name]
    half = row.get("fp16_tflops", row.get("bf16_tflops"))
    assert half >= row["fp32_tflops"] > 0
    fastest_half = max(half, row.get("bf16_tflops", 0))
    if "fp8_tflops" in row:
        assert fastest_half <= row["fp8_tflops"] <= 2.2 * fastest_half
    if "fp4_tflops" in row:
        assert row["fp8_tflops"] <= row["fp4_tflops"] <= 4 * row["fp8_tflops"]
    for rate in ("fp8", "fp4"):
        assert (f"{rate}_efficiency" in row) == (f"{rate}_tflops" in row)
        assert 0.2 < row.get(f"{rate}_efficiency", row["matmul_efficiency"]) < 1.1 * row["matmul_efficiency"]
    assert 0.2 < row["attention_efficiency"] <= row["matmul_efficiency"] < 1
    assert isinstance(row["fused_attention"], bool)
    assert 8 <= row["memory_gib"] <= 300
    assert 200 < row["memory_bandwidth_gbyte_per_s"] <= 8000


@pytest.mark.parametrize("name", DEVICES)
def test_the_name_of_a_device_ends_in_its_memory(name: str) -> None:
    """The name has what is on the package, of which the last NVIDIA generation lets up to 7% go unused."""
    on_package = int(name.rsplit("-", 1)[1].removesuffix("gb"))
    assert 0.93 * on_package < DEVICES[name]["memory_gib"] <= on_package


def test_devices_without_bf16_are_the_ones_before_ampere() -> None:
    without = {name for name, row in DEVICES.items() if "bf16_tflops" not in row}
    assert {name.split("-")[0] for name in without} == {"v100", "t4", "rtx2080", "rtx2080ti", "titan"}
    assert not any(DEVICES[name]["fused_attention"] for name in without)


def test_names_and_aliases_are_unique_in_any_case() -> None:
    words = [word.casefold() for name, row in DEVICES.items() for word in (name, *row["aliases"])]
    assert [word for word, count in Counter(words).items() if count > 1] == []


@pytest.mark.parametrize("name", DEVICES)
def test_the_default_links_of_a_device_exist(name: str) -> None:
    assert DEVICES[name]["default_intra_node"] in LINKS
    assert DEVICES[name]["default_inter_node"] in NETWORKS


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_complete(name: str) -> None:
    row = LINKS[name]
    assert set(row) - {"measured"} == {"bandwidth_gbyte_per_s", "efficiency", "latency_us", "source"}
    assert 10 < row["bandwidth_gbyte_per_s"] <= 900
    assert 0 < row["efficiency"] < 1
    assert 0 < row["latency_us"] <= 20
    assert row["source"].strip()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_complete(name: str) -> None:
    row = NETWORKS[name]
    assert set(row) - {"measured"} == {"rail_gbit_per_s", "rails", "efficiency", "latency_us", "source"}
    nodes = [rate["nodes"] for rate in row.get("measured", ())]
    assert nodes == sorted(set(nodes))
    for rate in row.get("measured", ()):
        assert rate["nodes"] > 1
        assert 0 < rate["bandwidth_gbyte_per_s"] <= row["rails"] * row["rail_gbit_per_s"] / 8
    assert row["rail_gbit_per_s"] in {1, 10, 25, 100, 200, 400, 800}
    assert row["rails"] >= 1
    assert 0 < row["efficiency"] < 1
    assert 0 < row["latency_us"] <= 50
    assert row["source"].strip()


def test_no_name_is_both_a_link_and_a_network() -> None:
    assert not set(LINKS) & set(NETWORKS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_traffic_of_an_optimizer_follows_from_its_bytes(name: str) -> None:
    """Gradient read, state and master read and written, weight written, and read where it is part of the master."""
    row = OPTIMIZERS[name]
    moved = row.get("gradient_bytes", 4) + 2 * (row["master_bytes"] + row["state_bytes"]) + 2
    moved += 2 if row["master_bytes"] < 4 else 0
    more = {"adafactor": 2 * 4, "muon": 34}
    assert row["update_bytes"] == pytest.approx(moved + more.get(name, 0))
    assert row["source"].strip()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_has_the_fields_of_the_domain(name: str) -> None:
    row = FRAMEWORKS[name]
    wanted = {field.name + SUFFIXES.get(field.name, "") for field in fields(Framework)} - {"name"}
    assert set(row) == wanted
    assert set(row["can"]) == {field.name for field in fields(Capability)}
    assert row["source"].strip()
    assert row["can"]["source"].strip()


@pytest.mark.parametrize("name", LIKE)
def test_a_framework_that_is_like_another_says_what_it_has_of_its_own(name: str) -> None:
    """Nothing that the other says already, and sources of its own."""
    row, other = LIKE[name], FRAMEWORKS[LIKE[name]["like"]]
    assert {"source", "can"} <= set(row) - {"like"} <= set(other)
    assert {"version", "source"} <= set(row["can"]) <= set(other["can"])
    assert all(row[key] != other[key] for key in set(row) - {"like"})
    assert all(row["can"][key] != other["can"][key] for key in row["can"])
    assert row["source"].strip()
    assert row["can"]["source"].strip()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_constants_of_a_framework_are_plausible(name: str) -> None:
    """Nothing sharded, a parameter costs 16 bytes (16-bit gradients, or FSDP), or 18 with fp32 gradients."""
    row = FRAMEWORKS[name]
    assert row["weight_bytes"] + row["gradient_bytes"] + row["optimizer_bytes"] in {16, 18}
    for share in ("overlap_replicated", "overlap_sharded", "overlap_gather", "exposed_gather", "overlap_tensor"):
        assert 0 <= row[share] <= 1
    assert row["fragmentation"] >= 1
    can = row["can"]
    assert set(can["schedules"]) <= {*(listed.name for listed in SCHEDULES), SEARCHED}
    assert {listed.name for listed in SCHEDULES if name in dict(listed.runs_as)} <= set(can["schedules"])
    assert set(can["zero_stages_pipeline"]) <= set(can["zero_stages"]) <= {0, 1, 2, 3}
    assert set(can["tp_zero_stages"]) <= set(can["zero_stages"])
    assert bool(can["tp_zero_stages"]) == can["tensor_parallel"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_names_in_a_cluster_exist(name: str) -> None:
    cluster = CLUSTERS[name]
    assert cluster["name"] == name
    assert set(cluster) <= {"name", "groups", "links"}
    for group in cluster["groups"]:
        assert set(group) >= GROUP_KEYS
        assert set(group) <= GROUP_KEYS | OTHER_GROUP_KEYS
        assert group["device"] in DEVICES
        assert isinstance(group["intra_node"], dict) or group["intra_node"] in LINKS
        assert isinstance(group["inter_node"], dict) or group["inter_node"] in NETWORKS
        assert group["host"]["link"] in LINKS


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_links_of_a_cluster_join_its_groups(name: str) -> None:
    groups = {group["name"]: group for group in CLUSTERS[name]["groups"]}
    assert len(groups) == len(CLUSTERS[name]["groups"])
    for link in CLUSTERS[name].get("links", ()):
        assert set(link) - LINK_KEYS in BANDWIDTHS
        first, second = (groups[end] for end in link["between"])
        shared = first.get("shared_nodes", "") == second.get("shared_nodes", "") != ""
        assert link["transport"] in ({"node"} if shared else {"rdma", "tcp"})


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_says_what_it_is(name: str) -> None:
    text = (ROOT / "cluster_specs" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "ource" in text or "After" in text


def test_the_sizes_of_the_large_clusters() -> None:
    sizes = {
        name: sum(group["nodes"] * group["devices_per_node"] for group in cluster["groups"])
        for name, cluster in CLUSTERS.items()
    }
    assert sizes["mixed-h100-a100-l40s"] == 512 + 1024 + 256
    assert sizes["hethub-mi250x-a100"] == 128 + 640
    assert sizes["h100-98304"] == 98304
