"""Stages and replicas on named nodes: what is weighed, what is chosen, and how ranks are counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import builders
import transcripts
from placement.plans import drawn_problem
from planner.costs.traffic import JointTraffic, Traffic, plan_traffic
from planner.domain.cluster import Cluster, Level, Link, Tier
from planner.domain.plan import Plan, Stage, Strategy
from planner.placement import Placement, Rank, place, slots
from planner.placement.blocks import on_groups, spans
from planner.placement.weight import Scale
from planner.specs.catalog import framework
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.model import read_model

MODEL = builders.model(8)
JOB = builders.job(64)
SEEDS = st.integers(0, 100_000)


def plan(*groups: str, dp: int, tp: tuple[int, ...] = (1,), cp: int = 1, split: tuple[int, ...] = (1,)) -> Plan:
    """Return a plan with a stage on each group; a single tp or split is that of all stages."""
    widths, splits = (values * len(groups) if len(values) == 1 else values for values in (tp, split))
    stages = tuple(
        Stage(
            group=group,
            first_layer=index,
            last_layer=index,
            strategy=Strategy(degrees=(("tp", widths[index]), ("cp", cp))),
            split=splits[index],
        )
        for index, group in enumerate(groups)
    )
    return Plan(stages=stages, schedule="1f1b", num_replicas=dp, micro_batch=2, num_microbatches=2, zero_stage=0)


def boxes(nodes: int = 2, per_node: int = 4, *, intra: float = 1e11, inter: float = 1e10) -> Cluster:
    return builders.cluster(builders.group(nodes=nodes, per_node=per_node, intra=intra, inter=inter))


def placed(plan_: Plan, cluster: Cluster) -> Placement:
    return place(plan_, cluster, MODEL, JOB)


def weight(plan_: Plan, cluster: Cluster, turns: dict[tuple[int, str], int], *, joint: float, ring: float) -> float:
    """Return what an order weighs, if stages hand over `joint` bytes and ranks of a ring `ring` bytes."""
    joints = tuple(
        JointTraffic(first=here, second=there, per_microbatch=joint)
        for here, there in pairwise(range(plan_.num_stages))
    )
    traffic = Traffic(joints=joints, rings=(ring,) * plan_.num_stages)
    return float(Scale(plan_, cluster, (traffic,)).weigh(spans(on_groups(plan_, cluster, turns))))


def coordinates(placement: Placement, *names: str) -> list[tuple[int, ...]]:
    return [tuple(getattr(rank, name) for name in names) for rank in placement.ranks]


def test_the_weight_is_bytes_over_the_rate_of_the_lowest_unit_that_holds_both() -> None:
    """Two nodes of four; pp 2, dp 4; 1 GB a micro-batch, two of them; 0.1 GB a ring; 100 GB/s inside, 10 between.

    Stage by stage: 4 transfers of 2 GB at 10 GB/s, and 2 rings of 4 steps inside: 0.8 + 8 x 0.001 = 0.808 s.
    Pipeline by pipeline: the transfers inside, 0.08 s; each ring twice inside, twice between: 4 x 0.001 + 4 x 0.01.
    """
    two = plan("chips", "chips", dp=4)
    assert weight(two, boxes(), {}, joint=1e9, ring=1e8) == pytest.approx(0.808)
    assert weight(two, boxes(), {(0, "chips"): 1}, joint=1e9, ring=1e8) == pytest.approx(0.124)


def test_parts_of_a_node_and_tiers_are_levels_of_the_tree() -> None:
    """Pairs at 200 GB/s, in nodes of four at 100, in racks of two nodes at 10, and 2 GB/s between racks.

    pp 2, dp 8 on four nodes. Pipeline by pipeline each has a pair: 8 x 2 GB / 200 = 0.08 s. Both rings of eight have 4
    steps inside nodes, 2 inside racks and 2 between: 2 x (4 x 0.001 + 2 x 0.01 + 2 x 0.05) = 0.248 s.
    """
    chips = builders.group(nodes=4, per_node=4, intra=1e11, inter=1e10)
    pair = Level(num_devices=2, link=Link(name="pair", bandwidth=2e11, efficiency=1.0, latency=0.0))
    rack = Tier(name="rack", num_nodes=2, bandwidth=2e9)
    cluster = builders.cluster(
        replace(
            chips,
            intra_node=replace(chips.intra_node, levels=(pair,)),
            inter_node=replace(chips.inter_node, tiers=(rack,)),
        )
    )
    two = plan("chips", "chips", dp=8)
    assert weight(two, cluster, {(0, "chips"): 1}, joint=1e9, ring=1e8) == pytest.approx(0.328)


def test_copies_that_divide_a_micro_batch_send_what_they_share() -> None:
    """A stage on one device, then on two copies: each gets half of 2 GB, both inside the node: 2 x 0.01 s."""
    divided = plan("chips", "chips", dp=1, split=(1, 2))
    assert weight(divided, boxes(1), {}, joint=1e9, ring=0.0) == pytest.approx(0.02)


def test_heavy_transfers_bring_stages_together() -> None:
    """Slow nodes: the stages of a pipeline share one, and ranks are counted as Megatron's other mapping does."""
    found = placed(replace(plan("chips", "chips", dp=4), num_microbatches=64), boxes())
    assert found.turns == ((0, "chips", 1),)
    assert found.weight < found.assumed_weight
    assert found.order == "tp-cp-pp-dp"
    assert [(rank.node, rank.replica, rank.stage) for rank in found.ranks[:4]] == [
        ("chips-0", 0, 0),
        ("chips-0", 0, 1),
        ("chips-0", 1, 0),
        ("chips-0", 1, 1),
    ]


def test_heavy_gradients_keep_replicas_together() -> None:
    """With one short sample a step the gradients are the heavy part: all as prices assume."""
    small = replace(plan("chips", "chips", dp=4), num_microbatches=1, micro_batch=1)
    found = place(small, boxes(), MODEL, replace(JOB, sequence=8))
    assert found.turns == ()
    assert found.weight == found.assumed_weight
    assert found.order == "tp-cp-dp-pp"


def test_ranks_are_counted_as_megatron_does() -> None:
    """With tp 2, cp 2, dp 2, pp 2 the tensor group of rank 0 is 0, 1; its context group 0, 2; dp 0, 4; pp 0, 8."""
    found = placed(plan("chips", "chips", dp=2, tp=(2,), cp=2), boxes(2, 8))
    assert found.order == "tp-cp-dp-pp"
    names = ("tp_rank", "cp_rank", "replica", "stage")
    assert coordinates(found, *names) == [
        (tp, cp, dp, pp) for pp in range(2) for dp in range(2) for cp in range(2) for tp in range(2)
    ]


def test_unlike_kinds_are_counted_after_one_another() -> None:
    """Two pipelines of two stages on one group, then one of one stage on the other."""
    cluster = builders.cluster(builders.group("a", nodes=1), builders.group("b", nodes=1))
    both = replace(plan("a", "a", dp=2), other_pipelines=(plan("b", dp=1, tp=(2,)),))
    found = placed(both, cluster)
    assert coordinates(found, "pipeline", "stage", "replica", "tp_rank") == [
        (0, 0, 0, 0),
        (0, 0, 1, 0),
        (0, 1, 0, 0),
        (0, 1, 1, 0),
        (1, 0, 0, 0),
        (1, 0, 0, 1),
    ]


def test_unlike_pipelines_in_the_same_boxes_are_counted_box_by_box() -> None:
    """Two on cards of either kind in each box: kind after kind would come back to the first box."""
    lab = read_cluster(str(transcripts.ROOT / "cluster_specs" / "lab-3080-4090.yaml"))
    found = placed(replace(plan("rtx3080", dp=4), other_pipelines=(plan("rtx4090", dp=4),)), lab)
    assert found.order == "tp-cp-pp-dp"
    assert [(rank.node, rank.pipeline, rank.replica) for rank in found.ranks[:6]] == [
        ("lab-0", 0, 0),
        ("lab-0", 0, 1),
        ("lab-0", 1, 0),
        ("lab-0", 1, 1),
        ("lab-1", 0, 2),
        ("lab-1", 0, 3),
    ]


def test_the_lab_keeps_its_cards_apart_and_its_pipelines_in_one_box() -> None:
    """Two boxes with two RTX 3080 and two RTX 4090: unlike cards never share a tensor group, a pipeline has one box."""
    lab = read_cluster(str(transcripts.ROOT / "cluster_specs" / "lab-3080-4090.yaml"))
    found = placed(plan("rtx3080", "rtx4090", dp=2, tp=(2,)), lab)
    tensor = defaultdict(set)
    pipelines = defaultdict(set)
    for rank in found.ranks:
        tensor[rank.stage, rank.replica].add((rank.node, rank.device))
        pipelines[rank.replica].add(rank.node)
    assert all(len(place_) == 1 for place_ in tensor.values())
    assert dict(pipelines) == {0: {"lab-0"}, 1: {"lab-1"}}
    assert found.order == "tp-cp-pp-dp"
    assert [(rank.device_index, rank.device) for rank in found.ranks[:4]] == [
        (0, "rtx3080-10gb"),
        (1, "rtx3080-10gb"),
        (2, "rtx4090-24gb"),
        (3, "rtx4090-24gb"),
    ]


def test_a_set_of_nodes_and_a_group_of_its_name_stay_apart() -> None:
    """Groups on shared nodes called a, and a group a with nodes of its own."""
    groups = [replace(builders.group(name), nodes="a") for name in ("b", "c")]
    found = placed(plan("a", "b", dp=1), builders.cluster(builders.group("a"), *groups))
    assert [rank.node for rank in found.ranks] == ["a-alone-0", "a-0"]


def block_weight(cluster: Cluster, here: list[Rank], there: list[Rank], size: float, streams: int) -> float:
    """Return bytes / rate between two blocks, found by trying the levels one by one."""
    ends = [cluster.group(block[0].group) for block in (here, there)]
    nodes = sorted({int(rank.node.rsplit("-", 1)[1]) for rank in (*here, *there)})
    names = {rank.node.rsplit("-", 1)[0] for rank in (*here, *there)}
    link = cluster.link(ends[0].name, ends[1].name)
    if len(names) > 1:
        rates = [float(end.inter_node.rate(end.num_nodes)) for end in ends]
        return size / min([*rates, *([float(link.rate)] if link else [])])
    if len(nodes) > 1:
        spans_ = sorted({tier.num_nodes for end in ends for tier in end.inter_node.tiers})
        within = [span for span in spans_ if nodes[0] // span == nodes[-1] // span]
        return size / min(float(end.inter_node.rate(within[0] if within else end.num_nodes)) for end in ends)
    if ends[0] != ends[1]:
        assert link is not None
        return size / (float(link.rate) * streams)
    first = min(rank.device_index for rank in (*here, *there)) - offset(cluster, ends[0].name)
    last = max(rank.device_index for rank in (*here, *there)) - offset(cluster, ends[0].name)
    inside = ends[0].intra_node
    parts = [level.link for level in inside.levels if first // level.num_devices == last // level.num_devices]
    return size / (float([*parts, inside][0].rate) * streams)


def offset(cluster: Cluster, name: str) -> int:
    """Return the devices of a node that belong to earlier groups."""
    group = cluster.group(name)
    earlier = cluster.groups[: cluster.groups.index(group)]
    return sum(other.devices_per_node for other in earlier if other.nodes and other.nodes == group.nodes)


def told_weight(plan_: Plan, problem: builders.Planning, ranks: tuple[Rank, ...]) -> float:
    """Return the weight of a rank table, block by block."""
    traffic = plan_traffic(plan_, problem.cluster, problem.model, problem.job, framework(problem.job.framework))
    blocks: dict[tuple[int, ...], list[Rank]] = defaultdict(list)
    for rank in ranks:
        blocks[rank.pipeline, rank.stage, rank.replica, rank.copy].append(rank)
    total = 0.0
    for kind, (pipeline, sent) in enumerate(zip(plan_.pipelines, traffic, strict=True)):
        for joint in sent.joints:
            ends = [pipeline.stages[joint.first], pipeline.stages[joint.second]]
            streams = min(end.strategy.num_devices for end in ends)
            for replica in range(pipeline.num_replicas):
                short = replica >= pipeline.num_replicas - pipeline.short_replicas
                size = (pipeline.num_microbatches - short) * joint.per_microbatch + joint.per_step
                shared = Counter(
                    (slice_ * ends[0].split // 6, slice_ * ends[1].split // 6) for slice_ in range(6)
                )  # splits are 1, 2 or 3
                for (a, b), slices in shared.items():
                    pair = blocks[kind, joint.first, replica, a], blocks[kind, joint.second, replica, b]
                    total += block_weight(problem.cluster, *pair, size * slices / 6, streams)
        for index, ring in enumerate(sent.rings):
            mine = [block for key, block in blocks.items() if key[:2] == (kind, index)]
            mine.sort(key=lambda block: (int(block[0].node.rsplit("-", 1)[1]), block[0].device_index))
            tp = pipeline.stages[index].strategy.degree("tp")
            for here, there in pairwise([*mine, mine[0]]):
                total += block_weight(problem.cluster, here, there, tp * ring, tp)
    return total


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_any_plan_is_placed_soundly(seed: int) -> None:
    """Every device at most once, every rank once, tensor groups inside a node, counts as in the plan.

    The weight is what the table says, and never more than with the replicas of each stage side by side.
    """
    found = drawn_problem(seed)
    assume(found is not None)
    assert found is not None
    problem, plan_ = found
    result = place(plan_, problem.cluster, problem.model, problem.job)
    assert [rank.rank for rank in result.ranks] == list(range(plan_.num_devices))
    assert len({(rank.node, rank.device_index) for rank in result.ranks}) == plan_.num_devices
    tensor: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for rank in result.ranks:
        group, first = problem.cluster.group(rank.group), offset(problem.cluster, rank.group)
        assert 0 <= rank.device_index - first < group.devices_per_node
        assert rank.node in {f"{group.nodes or group.name}-{node}" for node in range(group.num_nodes)}
        tensor[rank.pipeline, rank.stage, rank.replica, rank.copy, rank.cp_rank].add(rank.node)
    assert all(len(nodes) == 1 for nodes in tensor.values())
    counts = Counter((rank.pipeline, rank.stage, rank.group) for rank in result.ranks)
    for kind, pipeline in enumerate(plan_.pipelines):
        for index, stage in enumerate(pipeline.stages):
            assert counts[kind, index, stage.group] == pipeline.num_replicas * stage.num_devices
    assert result.weight <= result.assumed_weight
    assert result.weight == pytest.approx(told_weight(plan_, problem, result.ranks))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_ranks_follow_the_order_that_is_told(seed: int) -> None:
    """Sorted as the order says, unlike pipelines one by one; the other order never comes back to a node."""
    found = drawn_problem(seed)
    assume(found is not None)
    assert found is not None
    problem, plan_ = found
    result = place(plan_, problem.cluster, problem.model, problem.job)
    usual = result.order == "tp-cp-dp-pp"
    outer = ("stage", "replica") if usual else ("replica", "stage")
    keys = coordinates(result, "pipeline", *outer, "copy", "cp_rank", "tp_rank")
    if usual or not plan_.other_pipelines:
        assert keys == sorted(keys)
    if not usual:
        assert all(node.is_run for node in slots(result.ranks))
        assert [key for _, run in groupby(keys, key=lambda key: key[:2]) for key in sorted(run)] == keys
        assert len(list(groupby(keys, key=lambda key: key[:2]))) == plan_.data_parallel
    for node in slots(result.ranks):
        assert [rank.local_rank for rank in node.ranks] == list(range(len(node.ranks)))


def test_renaming_groups_changes_only_names() -> None:
    """The same plan on groups of other names lies on the same devices."""
    names = {"a": "zebra", "b": "apple"}
    before = builders.cluster(builders.group("a", nodes=2), builders.group("b", nodes=3))
    after = replace(before, groups=tuple(replace(group, name=names[group.name]) for group in before.groups))
    old = placed(plan("a", "b", "b", dp=4), before)
    new = placed(plan("zebra", "apple", "apple", dp=4), after)
    assert [rank.device_index for rank in old.ranks] == [rank.device_index for rank in new.ranks]
    assert [rank.node.replace("a-", "zebra-").replace("b-", "apple-") for rank in old.ranks] == [
        rank.node for rank in new.ranks
    ]


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_what_launchers_can_count_goes_first(seed: int) -> None:
    """Where all replicas of a stage side by side can be counted node by node, what is chosen can be, too."""
    drawn = drawn_problem(seed)
    assume(drawn is not None)
    assert drawn is not None
    found, plan_ = drawn
    usual = place(plan_, found.cluster, found.model, found.job, together=True)
    assume(all(node.is_run for node in slots(usual.ranks)))
    chosen = place(plan_, found.cluster, found.model, found.job)
    assert all(node.is_run for node in slots(chosen.ranks))
    assert chosen.weight <= usual.weight


def test_a_pipeline_over_two_kinds_of_nodes_is_launchable() -> None:
    """Taking turns on the first two nodes would weigh less, and no launcher could count that: 0-3, 8-11, ..."""
    cluster = read_cluster("2x8:a100-sxm-80gb+1x8:h100-sxm-80gb")
    model = read_model(str(transcripts.ROOT / "model_specs" / "llama-3-8b.json"))
    job, _ = read_job(None, {"global_batch": 1024}, model, cluster)
    runs = zip(("a100-sxm-80gb", "a100-sxm-80gb", "h100-sxm-80gb"), ((0, 7), (8, 14), (15, 31)), strict=True)
    stages = tuple(
        Stage(group=group, first_layer=first, last_layer=last, strategy=Strategy()) for group, (first, last) in runs
    )
    three = Plan(stages=stages, schedule="1f1b", num_replicas=8, micro_batch=2, num_microbatches=64, zero_stage=1)
    found = place(three, cluster, model, job)
    assert [(node.node, node.is_run) for node in slots(found.ranks)] == [
        ("a100-sxm-80gb-0", True),
        ("a100-sxm-80gb-1", True),
        ("h100-sxm-80gb-0", True),
    ]
