"""Hetu and Galvatron: no checker of theirs runs here, so that what their files must satisfy is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import builders
from export.random_plans import plan_file, unlike
from placement.plans import drawn_problem
from planner.checks import Context, run_checks
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import target
from planner.pipeline.written import bundle, parts
from planner.specs.plan import PlanFile

SEEDS = range(400)
CLUSTER = builders.cluster(builders.group("fast", nodes=2, per_node=4), builders.group("slow", nodes=2, per_node=4))


def stage(group: str, layers: tuple[int, int], tp: int, **more: Any) -> Stage:
    strategy = Strategy(degrees=(("tp", tp),) if tp > 1 else (), sequence_parallel=tp > 1)
    return Stage(group=group, first_layer=layers[0], last_layer=layers[1], strategy=strategy, **more)


def pipelines(*stages: Stage, dp: int = 1, number: int = 4) -> Plan:
    return Plan(stages=stages, schedule="1f1b", num_replicas=dp, micro_batch=2, num_microbatches=number, zero_stage=1)


def written(plan: Plan, layers: int = 6) -> PlanFile:
    return plan_file(builders.planning(CLUSTER, builders.model(layers)), plan, "megatron")


UNLIKE = written(
    replace(
        pipelines(stage("fast", (0, 2), 4, num_recomputed=1), stage("fast", (3, 5), 2), dp=1, number=6),
        other_pipelines=(pipelines(stage("slow", (0, 3), 4), stage("slow", (4, 5), 2), dp=1, number=2),),
    )
)
"""Two pipelines of unlike layers, the slower with a quarter of the batch."""


def data(name: str, file: PlanFile) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(parts(target(name), file)[0].text)
    return document


def leaves(node: Any) -> Iterator[dict[str, Any]]:
    """Yield everything that has ranks."""
    if isinstance(node, dict):
        if "device_group_union" in node:
            yield node
        else:
            for value in node.values():
                yield from leaves(value)


def test_unlike_pipelines_have_ranks_of_their_own() -> None:
    """Layer 3 is on the second stage of the one and on the first of the other."""
    found = data("hetu", UNLIKE)
    blocks = found["llama"]["blocks"]
    assert found["zero"] is True
    assert blocks["blocks3"]["attn"]["qkv"] == {
        "split": {"1": [2, 4]},
        "dup": [2, 2],
        "device_group_union": [[4, 5], [6, 7, 8, 9]],
        "type": "variable",
    }
    assert [blocks[f"blocks{index}"]["recompute"] for index in (0, 1)] == [[True, False], [False, False]]
    assert found["recompute_layer_idxs_list"] == [[0], []]
    names = {part.name: part.text for part in bundle(target("hetu"), UNLIKE)}
    assert names["batch.txt"] == "--global_batch_size 16\n--micro_batch_size 2\n--micro_batch_num_list [6,2]\n"


def _hetu_holds(file: PlanFile) -> None:
    """Check what the structure must satisfy, whatever the plan."""
    found = data("hetu", file)
    blocks = found["llama"]["blocks"]
    assert [one["range"] for one in blocks.values()] == [[index] for index in range(file.model.num_layers)]
    devices, number = set(found["devices"]), file.plan.data_parallel
    for leaf in leaves(found):
        union = leaf["device_group_union"]
        (split,) = leaf["split"].values()
        assert len(union) == len(split) == len(leaf["dup"]) == number
        assert all(set(group) <= devices for group in union)
        assert sum(map(len, union)) == len({rank for group in union for rank in group})
        for group, parts_, copies in zip(union, split, leaf["dup"], strict=True):
            assert parts_ * copies == len(group) * number
    for block in blocks.values():
        unions = [leaf["device_group_union"] for leaf in leaves(block)]
        assert all(union == unions[0] for union in unions)
    for which in range(number):
        order = [block["attn"]["qkv"]["device_group_union"][which] for block in blocks.values()]
        runs = [group for index, group in enumerate(order) if index == 0 or group != order[index - 1]]
        assert len(runs) == len({tuple(group) for group in runs})
    used = {rank for leaf in leaves(found) for group in leaf["device_group_union"] for rank in group}
    assert used == devices


def _kinds(seed: int) -> PlanFile | None:
    """Return the file of a random plan with one or two kinds of pipelines that Hetu may run."""
    found = drawn_problem(seed)
    if found is None:
        return None
    problem, drawn = found

    def plain(one: Plan) -> Plan:
        stages = tuple(
            replace(
                item,
                split=1,
                strategy=Strategy(
                    degrees=tuple(pair for pair in item.strategy.degrees if pair[0] == "tp" and pair[1] > 1),
                    sequence_parallel=item.strategy.degree("tp") > 1,
                ),
            )
            for item in one.stages
        )
        return replace(one, stages=stages, zero_stage=1, other_pipelines=tuple(map(plain, one.other_pipelines)))

    plan = plain(drawn)
    context = Context(plan=plan, cluster=problem.cluster, model=problem.model, job=problem.job)
    problem = replace(problem, model=builders.model(problem.model.num_layers))
    return plan_file(problem, plan, "megatron") if not run_checks(context, names=("devices",)) else None


def test_every_file_for_hetu_holds_together() -> None:
    """Every layer once, groups without overlap inside the devices, equal ones within a layer, one run a stage."""
    _hetu_holds(UNLIKE)
    held = 0
    for seed in SEEDS:
        file = _kinds(seed)
        try:
            if file is not None:
                _hetu_holds(file)
                held += 1
        except CannotExpress as refused:
            assert "none between" in str(refused)  # noqa: PT017 (nodes whose ranks do not follow one another)
    assert held > 40


def _galvatron_holds(file: PlanFile) -> None:
    found, plan = data("galvatron", file), file.plan
    layers = file.model.num_layers
    names = ("tp_sizes_enc", "cp_sizes_enc", "tp_consecutive_flags", "dp_types_enc", "use_sp", "checkpoint")
    rows = {key: [int(one) for one in found[key].split(",")] for key in (*names, "pp_division")}
    assert all(len(rows[key]) == layers for key in names)
    assert sum(rows["pp_division"]) == layers
    assert len(rows["pp_division"]) == found["pp_deg"]
    each = found["world_size"] // found["pp_deg"]
    assert each * found["pp_deg"] == found["world_size"] == plan.num_devices
    for tp, cp in zip(rows["tp_sizes_enc"], rows["cp_sizes_enc"], strict=True):
        assert each % (tp * cp) == 0
        at_once = found["global_bsz"] // found["chunks"]
        assert at_once * found["chunks"] == found["global_bsz"]
        assert at_once % (each // tp // cp) == 0
    smallest = min(*rows["tp_sizes_enc"], found["vtp"])
    assert found["global_bsz"] % (each // smallest) == 0
    assert sum(rows["checkpoint"]) == sum(one.num_recomputed for one in plan.stages)


def test_every_file_for_galvatron_holds_together() -> None:
    """An entry for each layer, degrees that divide a stage's ranks, whole samples for each."""
    held = 0
    for seed in SEEDS:
        file = unlike(seed, "megatron")
        if file is None:
            continue
        file = replace(file, plan=replace(file.plan, zero_stage=3 if seed % 2 else 0))
        try:
            _galvatron_holds(file)
            held += 1
        except CannotExpress:
            continue
    assert held > 40


def test_stages_may_differ_in_how_they_use_equally_many_ranks() -> None:
    """First tp 2 with dp 2, then tp 4 with dp 1."""
    plan = replace(
        pipelines(stage("fast", (0, 3), 2, split=2), stage("slow", (4, 5), 4), stage("slow", (4, 5), 2, split=2)),
        zero_stage=0,
    )
    middle = replace(plan.stages[1], last_layer=4)
    plan = replace(plan, stages=(plan.stages[0], middle, replace(plan.stages[2], first_layer=5)))
    found = data("galvatron", written(plan))
    assert found["tp_sizes_enc"] == "2,2,2,2,4,2"
    assert (found["pp_division"], found["vtp"], found["chunks"], found["world_size"]) == ("4,1,1", 2, 4, 12)


ONE = pipelines(stage("fast", (0, 2), 2), stage("slow", (3, 5), 2), dp=2)
REFUSED = (
    ("hetu", replace(ONE, zero_stage=3), "ZeRO stage 3"),
    ("hetu", replace(ONE, schedule="gpipe"), "schedule gpipe"),
    ("hetu", replace(ONE, stages=(replace(ONE.stages[0], split=2), ONE.stages[1])), "divide micro-batches"),
    ("hetu", replace(ONE, stages=tuple(replace(one, recompute="selective") for one in ONE.stages)), "selective"),
    (
        "hetu",
        replace(ONE, stages=tuple(replace(one, strategy=Strategy(degrees=(("tp", 2),))) for one in ONE.stages)),
        "without sequence parallelism",
    ),
    (
        "hetu",
        replace(ONE, other_pipelines=(replace(ONE, micro_batch=1, stages=ONE.stages[:1]),)),
        "unlike micro-batches",
    ),
    ("galvatron", replace(ONE, zero_stage=1), "ZeRO stage 1"),
    ("galvatron", replace(ONE, zero_stage=0, short_replicas=1), "unlike shares"),
    (
        "galvatron",
        replace(ONE, zero_stage=0, stages=(stage("fast", (0, 2), 4), stage("slow", (3, 5), 2))),
        "unlike numbers of devices",
    ),
    (
        "galvatron",
        replace(ONE, zero_stage=0, stages=(stage("fast", (0, 2), 4), stage("slow", (3, 5), 2, split=2))),
        "unlike degrees",
    ),
)


@pytest.mark.parametrize(("name", "plan", "reason"), REFUSED, ids=[f"{name}-{why}" for name, _, why in REFUSED])
def test_what_cannot_be_said_is_refused(name: str, plan: Plan, reason: str) -> None:
    """Nothing is rounded."""
    with pytest.raises(CannotExpress, match=reason):
        parts(target(name), written(plan))


def test_other_models_are_refused_for_hetu() -> None:
    """Tied embeddings are one weight, and other families have other names."""
    tied = replace(UNLIKE, model=builders.model(6, tied=True))
    with pytest.raises(CannotExpress, match="tied embeddings"):
        parts(target("hetu"), tied)
    with pytest.raises(CannotExpress, match="the family gpt2"):
        parts(target("hetu"), replace(UNLIKE, model=replace(UNLIKE.model, family="gpt2")))
