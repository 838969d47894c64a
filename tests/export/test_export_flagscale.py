"""What FlagScale is told is what the plan says, and its own rules find nothing wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

import builders
from export.random_plans import plan_file, unlike
from planner.configurations.engine import broken
from planner.configurations.forms.flagscale import FLAGSCALE as FORM
from planner.configurations.megatron.flags import flags
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import target
from planner.export.base import Part
from planner.pipeline.configured import on_cluster
from planner.pipeline.layout import plan_from_layout
from planner.pipeline.written import bundle, parts
from planner.specs.model import model_from_record
from planner.specs.plan import PlanFile

SEEDS = range(400)
CLUSTER = builders.cluster(
    builders.group("fast", nodes=2, per_node=4, speed=2.0),
    builders.group("slow", nodes=3, per_node=4),
)


def stage(
    group: str, layers: tuple[int, int], tp: int, *, split: int = 1, recomputed: int = 0, cut: bool = True
) -> Stage:
    return Stage(
        group=group,
        first_layer=layers[0],
        last_layer=layers[1],
        strategy=Strategy(degrees=(("tp", tp),) if tp > 1 else (), sequence_parallel=cut and tp > 1),
        split=split,
        num_recomputed=recomputed,
    )


def written(*stages: Stage, dp: int = 2, micro_batch: int = 2, tied: bool = False) -> PlanFile:
    """Return the file of a plan on fast and slow nodes."""
    plan = Plan(
        stages=stages,
        schedule="1f1b",
        num_replicas=dp,
        micro_batch=micro_batch,
        num_microbatches=4,
        zero_stage=1,
    )
    layers = stages[-1].last_layer + 1
    return plan_file(builders.planning(CLUSTER, builders.model(layers, tied=tied)), plan, "flagscale")


def named(found: tuple[Part, ...]) -> dict[str, str]:
    return {part.name: part.text for part in found}


UNLIKE = written(
    stage("fast", (0, 4), 2, split=2), stage("slow", (5, 5), 4, recomputed=1), stage("slow", (6, 7), 2), dp=2
)


def test_unlike_stages_become_meshes() -> None:
    """Runs of stages with equal degrees and devices; the first mesh tells the micro-batch."""
    config = yaml.safe_load(named(parts(target("flagscale"), UNLIKE))["flagscale.yaml"])
    system, model = config["train"]["system"], config["train"]["model"]
    assert system["hetero"]["hetero_process_meshes"] == [2, 1, 1, 4, 1, 4, 1, 1, 2, 1, 2, 1, 1, 2, 1]
    assert system["hetero"]["hetero_device_types"] == ["fast", "slow", "slow"]
    assert system["hetero"]["hetero_pipeline_layer_split"] == [5, 1, 2]
    assert system["pipeline_model_parallel_size"] == 3
    assert system["recompute"]["recompute_granularity_per_stage_micro_batch"] == [[1, 4, 0], [1, 4, 1], [1, 4, 0]]
    assert system["recompute"]["recompute_num_layers_per_stage_micro_batch"] == [[1, 4, 0], [1, 4, 1], [1, 4, 0]]
    assert (model["micro_batch_size"], model["global_batch_size"]) == (1, 16)
    assert config["experiment"]["runner"]["rdzv_backend"] == "static"


OWN = {
    "enable_hetero",
    "hetero_process_meshes",
    "hetero_device_types",
    "hetero_current_device_type",
    "hetero_pipeline_layer_split",
    "standalone_embedding_stage",
    "recompute_granularity_per_stage_micro_batch",
    "recompute_method_per_stage_micro_batch",
    "recompute_num_layers_per_stage_micro_batch",
}
"""Arguments that the fork adds (flagscale/backends/Megatron-LM, its patch of megatron/training/arguments.py)."""


def test_every_argument_is_one_of_megatron_or_of_the_fork() -> None:
    """The runner makes a flag of every leaf, and Megatron's parser refuses what it does not know."""
    config = yaml.safe_load(named(parts(target("flagscale"), UNLIKE))["flagscale.yaml"])
    keys = {key for block in config["train"].values() for key in leaves(block)}
    assert keys >= OWN
    assert {f"--{key.replace('_', '-')}" for key in keys - OWN} <= set(flags())


def leaves(block: dict[str, object]) -> Iterator[str]:
    for key, value in block.items():
        yield from leaves(value) if isinstance(value, dict) else [key]


def test_the_hostfile_has_the_type_of_every_node() -> None:
    """In the order of the ranks, so that sorting by type changes nothing."""
    hosts = named(bundle(target("flagscale"), UNLIKE))["hostfile"]
    assert hosts == (
        "fast-0 slots=4 type=fast\nfast-1 slots=4 type=fast\n"
        "slow-0 slots=4 type=slow\nslow-1 slots=4 type=slow\nslow-2 slots=4 type=slow\n"
    )


def test_a_type_that_comes_back_has_another_name() -> None:
    """FlagScale sorts ranks by the first place of their type."""
    back = written(stage("slow", (0, 1), 4), stage("fast", (2, 3), 4), stage("slow", (4, 5), 4), dp=1)
    found = named(parts(target("flagscale"), back))
    assert found["hostfile"] == "slow-0 slots=4 type=slow\nfast-0 slots=4 type=fast\nslow-1 slots=4 type=slow-2\n"
    assert "[slow, fast, slow-2]" in found["flagscale.yaml"]


def test_the_configuration_means_the_plan_on_its_cluster() -> None:
    """All devices are counted, those of stages that divide micro-batches too."""
    configuration = FORM.read(named(parts(target("flagscale"), UNLIKE))["flagscale.yaml"], "flagscale.yaml")
    found = on_cluster(FORM.setup(configuration), "flagscale.yaml", FORM.framework, CLUSTER)
    assert found.file.plan == UNLIKE.plan
    assert not any("it uses" in note for note in found.notes)


def test_a_uniform_plan_needs_no_meshes() -> None:
    """Plain Megatron-LM says it."""
    plain = written(stage("slow", (0, 1), 2), stage("slow", (2, 3), 2), dp=2)
    system = yaml.safe_load(named(parts(target("flagscale"), plain))["flagscale.yaml"])["train"]["system"]
    assert "hetero" not in system
    assert (system["tensor_model_parallel_size"], system["pipeline_model_parallel_size"]) == (2, 2)


REFUSED = (
    (written(stage("fast", (0, 1), 2, cut=False), stage("slow", (2, 3), 4, cut=False)), "without sequence parallelism"),
    (written(stage("fast", (0, 1), 2, cut=False), stage("slow", (2, 3), 4)), "unlike in sequence parallelism"),
    (written(stage("fast", (0, 1), 2), stage("slow", (2, 3), 4), tied=True), "both ends need the same"),
    (
        written(stage("slow", (0, 1), 2, split=2), stage("fast", (2, 3), 2, split=3), tied=True, dp=1, micro_batch=6),
        "one must divide the other",
    ),
)


@pytest.mark.parametrize(("file", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_it_cannot_say_is_refused(file: PlanFile, reason: str) -> None:
    """Nothing is rounded."""
    with pytest.raises(CannotExpress, match=reason):
        parts(target("flagscale"), file)


def test_other_precisions_and_short_replicas_are_refused() -> None:
    """By the exporter, and by the capability of the framework."""
    narrow = replace(UNLIKE, job=replace(UNLIKE.job, precision="fp8"))
    with pytest.raises(CannotExpress, match="precision fp8"):
        parts(target("flagscale"), narrow)
    plan = replace(UNLIKE.plan, short_replicas=1)
    short = replace(UNLIKE, plan=plan, job=replace(UNLIKE.job, global_batch=plan.global_batch))
    with pytest.raises(CannotExpress, match="replicas with unlike shares of the batch"):
        parts(target("flagscale"), short)


def test_a_node_with_two_kinds_of_devices_is_refused() -> None:
    """A line of the hostfile has one type."""
    first, second = CLUSTER.groups
    boxes = tuple(replace(group, nodes="box", num_nodes=1) for group in (first, second))
    mixed = replace(written(stage("fast", (0, 1), 2), stage("slow", (2, 3), 2), dp=1), cluster=builders.cluster(*boxes))
    with pytest.raises(CannotExpress, match="box-0 with fast and slow"):
        parts(target("flagscale"), mixed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_written_is_read_again(seed: int) -> None:
    """Its rules accept it, and it means the plan that it was written from, and its model."""
    file = unlike(seed)
    if file is None:
        return
    try:
        found = named(parts(target("flagscale"), file))
    except CannotExpress:
        return
    configuration = FORM.read(found["flagscale.yaml"], "flagscale.yaml")
    assert broken(FORM, configuration) == ()
    meant = FORM.setup(configuration)
    assert meant.precision == file.job.precision
    assert meant.model is not None
    assert model_from_record({"name": "small", **meant.model}, "small").parameters == file.model.parameters
    slots = sum(map(int, re.findall(r"slots=(\d+)", found["hostfile"])))
    assert slots == file.plan.num_devices
    layout, hetero = meant.layout, "enable_hetero: true" in found["flagscale.yaml"]
    if hetero:
        assert meant.world == file.plan.num_devices
    else:
        layout = replace(layout, dp=file.plan.num_replicas * file.plan.stages[0].split)
    plan, _ = plan_from_layout(layout, file.cluster, file.model, file.job)
    assert _told(plan, groups=hetero) == _told(file.plan, groups=hetero)


def _told(plan: Plan, *, groups: bool) -> tuple[object, ...]:
    """Return what of a plan matters: of equal splits more replicas are the same; only meshes tell devices."""
    whole = [
        (
            stage.group if groups else "",
            stage.chunks,
            stage.strategy,
            plan.num_replicas * stage.split,
            plan.micro_batch // stage.split,
            stage.num_recomputed,
        )
        for stage in plan.stages
    ]
    return (whole, plan.num_microbatches, plan.global_batch, plan.zero_stage)


def test_many_random_plans_are_written() -> None:
    """The round trip above is about something."""
    files = [file for file in map(unlike, SEEDS) if file is not None]
    assert sum("hetero_process_meshes" in text_or_nothing(file) for file in files) > 40


def text_or_nothing(file: PlanFile) -> str:
    try:
        return parts(target("flagscale"), file)[0].text
    except CannotExpress:
        return ""
