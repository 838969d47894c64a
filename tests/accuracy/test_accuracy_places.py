"""Runs on unlike devices: which devices and links each stage has, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from accuracy.judged_runs import run
from planner.accuracy.causes import causes
from planner.accuracy.judge import judge_runs, price
from planner.accuracy.machine import machines
from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.accuracy.setting import setting
from planner.accuracy.track import track_record
from planner.accuracy.uncalibrated import uncalibrated
from planner.calibration.applied import on_cluster
from planner.calibration.rows import UNLIKE, usable
from planner.errors import SpecError

SIZES = {"layers": 24, "hidden": 1024, "heads": 16, "seq": 1024, "vocab": 52256, "params_b": 0.355}
LINKS = {"intra_node": "NVLink 170 Gb/s, PCIe 50 Gb/s", "inter_node": "10 Gb/s, 50 Gb/s"}
MACHINE = {"gpu": "V100:12+T4:4", "gpus": 16, "gpus_per_node": 4, "placement": "rank order pp, dp, tp", **LINKS}
SPREAD = {"tp": 2, "pp": 4, "dp": 2, "mbs": 1, "gbs": 32}
FAST, SLOW, BOTH = "v100-sxm-16gb", "t4-16gb", ("v100-sxm-16gb", "t4-16gb")


def ran(**changes: object) -> Run:
    """Return a run on three nodes of V100 and one of T4, a stage on each, with changes."""
    given = {"framework": "megatron-deepspeed", "precision": "fp16", **SIZES, **MACHINE, **SPREAD, **changes}
    return run(**given)


def seconds(**changes: object) -> float:
    """Return the predicted step [s] of the run with changes."""
    return price([setting(ran(**changes))])[0].step_time


def test_each_kind_of_device_has_its_links() -> None:
    """Clauses belong to the kinds in their order; one text is that of all; rates that are told replace the sheet's."""
    found = machines(ran())
    assert [(group.device.name, group.num_nodes) for group in found] == [(FAST, 3), (SLOW, 1)]
    assert [group.intra_node.name for group in found] == ["nvlink2", "pcie3"]
    assert [group.intra_node.bandwidth for group in found] == [170e9 / 8, 50e9 / 8]
    assert [group.inter_node.bandwidth for group in found] == [10e9 / 8, 50e9 / 8]
    assert [group.inter_node.bandwidth for group in machines(ran(inter_node="25 Gb/s"))] == [25e9 / 8] * 2


@pytest.mark.parametrize(
    ("changes", "nodes", "kinds"),
    [
        ({}, ["0", "1", "2", "3"], [(FAST,), (FAST,), (FAST,), (SLOW,)]),
        ({"pp": 8, "dp": 1}, ["0", "0", "1", "1", "2", "2", "3", "3"], [(FAST,)] * 6 + [(SLOW,)] * 2),
        ({"pp": 2, "dp": 4}, ["0 1", "2 3"], [(FAST,), BOTH]),
        ({"pp": 1, "dp": 8}, ["0 1 2 3"], [BOTH]),
        ({"pp": 2, "dp": 4, "placement": "rank order: dp, pp, tp"}, ["0 1 2 3"] * 2, [BOTH] * 2),
        ({"pp": 2, "dp": 4, "placement": "rank order tp, dp, pp"}, ["0 1 2 3"] * 2, [BOTH] * 2),
    ],
)
def test_stages_lie_where_their_ranks_do(
    changes: dict[str, object], nodes: list[str], kinds: list[tuple[str, ...]]
) -> None:
    """Ranks fill the nodes in order; stages on the same nodes have groups of the same name, and meet inside them."""
    places = setting(ran(**changes)).places
    assert [tuple(group.device.name for group in place.groups) for place in places] == kinds
    assert [{group.name.split(":")[0] for group in place.groups} for place in places] == [{f"nodes {n}"} for n in nodes]


def test_unlike_replicas_have_the_slowest_links() -> None:
    """A stage on a node of each kind: PCIe inside of both, 10 Gb/s between them, two nodes."""
    groups = setting(ran(pp=2, dp=4)).places[1].groups
    assert {group.intra_node.name for group in groups} == {"pcie3"}
    assert {group.inter_node.bandwidth for group in groups} == {10e9 / 8}
    assert {group.num_nodes for group in groups} == {2}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "V100+T4"}, "how many there are of each is not in the columns"),
        ({"gpu": "V100:8+T4:4"}, "how many there are of each is not in the columns"),
        ({"gpu": "V100:10+T4:6"}, "some nodes are not full"),
        ({"placement": ""}, "the order of ranks is not in the column placement"),
        ({"placement": "rank order pp, dp"}, "the order of ranks is not in the column placement"),
        ({"vpp": 2}, "virtual stages are not modelled there"),
    ],
)
def test_what_is_not_said_of_unlike_devices(changes: dict[str, object], reason: str) -> None:
    """Their counts, whole nodes and the order of ranks decide where a stage lies."""
    with pytest.raises(NotJudgedError, match=f"^unlike devices: {reason}$"):
        setting(ran(**changes))


def test_a_kind_that_is_not_known_is_named() -> None:
    """As with a run on one kind of device."""
    with pytest.raises(NotJudgedError, match="device not in the catalogue"):
        setting(ran(gpu="V100:12+tpu:4"))
    with pytest.raises(SpecError):
        machines(ran(gpu="V100:12+tpu:4"))


def test_two_kinds_that_are_one_cost_what_one_costs() -> None:
    """On one stage the replay and the closed form are the same sum."""
    like = {"pp": 1, "dp": 8, "intra_node": "NVLink 170 Gb/s", "inter_node": "10 Gb/s"}
    assert seconds(gpu="V100:12+V100:4", **like) == pytest.approx(seconds(gpu="V100", **like), rel=1e-9)


@pytest.mark.parametrize("changes", [{"pp": 1, "dp": 8}, {"pp": 2, "dp": 4}, {}])
def test_the_slowest_device_decides(changes: dict[str, object]) -> None:
    """A run with some slow devices lies between those on fast and on slow ones alone, all with the same links."""
    like = {"intra_node": "PCIe 50 Gb/s", "inter_node": "10 Gb/s", **changes}
    fast, mixed, slow = (seconds(gpu=gpu, **like) for gpu in ("V100:12+V100:4", "V100:12+T4:4", "T4:12+T4:4"))
    assert fast < mixed <= slow * (1 + 1e-9)
    if changes.get("pp") == 1:
        assert mixed == pytest.approx(slow)


def test_memory_is_that_of_the_fullest_stage() -> None:
    """Full recompute frees most of it; the limit is that of the stage's device."""
    kept, freed = judge_runs([ran(), ran(recompute="full")], 0.1)
    assert kept.peak_memory is not None
    assert freed.peak_memory is not None
    assert kept.peak_memory > freed.peak_memory
    assert kept.step_time is not None
    assert freed.step_time is not None
    assert kept.step_time < freed.step_time
    assert kept.memory_limit == pytest.approx(0.9 * setting(ran()).places[0].groups[0].device.memory)


def test_prices_keep_the_order_of_the_settings() -> None:
    """Like and unlike devices are priced apart and answered in turn."""
    settings = [setting(one) for one in (ran(), ran(gpu="T4"), ran(mbs=2), ran(gpu="V100"))]
    assert price(settings) == [price([one])[0] for one in settings]


def test_changes_reach_every_group() -> None:
    """Comparisons, causes and calibrated machines change the devices of all stages."""
    item = setting(ran())
    assert {group.device.matmul_efficiency for group in uncalibrated(item).groups} == {0.76, 0.45}
    assert "exchange between nodes" in causes(judge_runs([ran(pp=1, dp=8, iter_time_s=1.0)], 0.1), 0.1)[0]
    other = replace(builders.group(), device=replace(machines(ran())[1].device, matmul_efficiency=0.1))
    moved = on_cluster(builders.cluster(other))(item)
    assert [group.device.matmul_efficiency for group in moved.groups] == [0.62, 0.62, 0.62, 0.1]
    assert on_cluster(builders.cluster())(item) == item


def test_unlike_devices_are_recorded_together_and_calibrate_none() -> None:
    """Their errors are those of a mixture; a calibration is one of one device."""
    one = judge_runs([ran(iter_time_s=1.0)], 0.1)
    assert [row.chip for row in track_record(one, one).measured] == ["v100+t4"]
    with pytest.raises(SpecError, match=UNLIKE):
        usable([ran(iter_time_s=1.0)])
