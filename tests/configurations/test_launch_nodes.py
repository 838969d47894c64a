"""Launch scripts on unlike nodes: stages are read back on the groups whose nodes have their ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

import builders
from planner.configurations import FORMS, Form
from planner.configurations.launch import Allocation, allocation
from planner.configurations.nodes import stage_kinds
from planner.domain.cluster import Cluster, DeviceGroup
from planner.domain.plan import Plan, Stage, Strategy
from planner.export import target
from planner.pipeline import judge
from planner.pipeline.configured import Configured, on_cluster
from planner.pipeline.written import parts
from planner.specs.plan import PlanFile, unwritten

SLOW = builders.group("old", nodes=4, per_node=4)
FAST = builders.group("new", nodes=4, per_node=8, speed=4.0)


def stage(group: str, first: int, last: int, tp: int = 1) -> Stage:
    strategy = Strategy(degrees=(("tp", tp),) if tp > 1 else (), sequence_parallel=tp > 1)
    return Stage(group=group, first_layer=first, last_layer=last, strategy=strategy)


def plan_file(*stages: Stage, dp: int, groups: tuple[DeviceGroup, ...] = (SLOW, FAST)) -> PlanFile:
    made = Plan(stages=stages, schedule="1f1b", num_replicas=dp, micro_batch=1, num_microbatches=4, zero_stage=1)
    job = replace(builders.job(made.global_batch), headroom=0.1)
    return unwritten(made, Cluster(name="hall", groups=groups), builders.model(), job, "plan.yaml")


def form_of(framework: str) -> Form:
    return next(form for form in FORMS if form.name == framework)


def read_back(file: PlanFile, launcher: str = "torchrun", framework: str = "megatron") -> Configured:
    """Return what the script that starts a plan means on its cluster."""
    script = parts(target(launcher), file, framework)[0].text
    form = form_of(framework)
    setup = form.setup(form.read(script, "launch"))
    return on_cluster(setup, "launch", form.framework, file.cluster, file.model, {"headroom": 0.1})


def has_order_note(found: Configured) -> bool:
    return any("in the order of the cluster: old, new" in note for note in found.notes)


FILES = {
    "the second group first": plan_file(stage("new", 0, 2), stage("old", 3, 3), dp=16),
    "and by turns": plan_file(stage("new", 0, 1), stage("old", 2, 2), stage("new", 3, 3), dp=8),
    "the second group alone": plan_file(stage("new", 0, 1, tp=2), stage("new", 2, 3, tp=2), dp=8),
    "a part of each": plan_file(stage("new", 0, 1, tp=2), stage("old", 2, 3, tp=2), dp=4),
    "half of every node": plan_file(stage("new", 0, 2, tp=4), stage("old", 3, 3, tp=4), dp=1),
}


@pytest.mark.parametrize("framework", ["megatron", "megatron-bridge"])
@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
@pytest.mark.parametrize("name", FILES)
def test_a_plan_on_unlike_nodes_is_read_back_as_it_was(name: str, launcher: str, framework: str) -> None:
    """The same stages on the same groups, which take the same time, and nothing was guessed."""
    file = FILES[name]
    found = read_back(file, launcher, framework)
    assert found.file.plan == file.plan
    before, after = judge(file)[0], judge(found.file)[0]
    assert before is not None
    assert after is not None
    assert after.step_time == before.step_time
    assert not has_order_note(found)


def test_groups_of_one_device_are_told_apart_by_their_nodes() -> None:
    """A script that lists nodes names the groups; Slurm only has the type of the devices, and that is said."""
    groups = (SLOW, replace(FAST, device=replace(FAST.device, name="old"), name="new"))
    file = plan_file(stage("new", 0, 2), stage("old", 3, 3), dp=16, groups=groups)
    found = read_back(file)
    assert found.file.plan == file.plan
    assert not has_order_note(found)


def test_an_order_that_nobody_said_is_a_note() -> None:
    """Arguments alone, and nodes with names of their own, say nothing of groups; one group needs no order."""
    file = plan_file(stage("new", 0, 1), stage("new", 2, 2), stage("old", 3, 3), dp=16)
    form = form_of("megatron")
    arguments = parts(target("megatron"), file)[0].text
    script = parts(target("torchrun"), file, "megatron")[0].text
    notes = []
    for text in (arguments, script.replace("new-", "gpu-"), script.replace("new-", "a").replace("old-", "b")):
        setup = form.setup(form.read(text, "launch"))
        found = on_cluster(setup, "launch", form.framework, file.cluster, file.model)
        notes += [note for note in found.notes if "order of the cluster: old, new" in note]
    assert [note.partition("; ")[0] for note in notes] == [
        "it does not say which ranks run on which of the unlike nodes",
        "it names nodes or devices that hall does not have (gpu)",
        "it does not say which ranks run on which of the unlike nodes",
    ]
    alone = Cluster(name="hall", groups=(replace(FAST, num_nodes=8),))
    setup = form.setup(form.read(script, "launch"))
    assert not [note for note in on_cluster(setup, "launch", "megatron", alone, file.model).notes if "order" in note]


def test_stages_are_where_their_ranks_are() -> None:
    """Of 2 stages of 2 ranks with 2 replicas, counted stage by stage on 2 kinds of nodes, and pipeline by pipeline."""
    halves, turns = (("a", 4), ("b", 4)), (("a", 2), ("b", 2), ("a", 2), ("b", 2))
    assert stage_kinds(halves, 2, 2, 2, pipelines_first=False) == ("a", "b")
    assert stage_kinds(halves, 2, 2, 2, pipelines_first=True) == ()
    assert stage_kinds(turns, 2, 2, 2, pipelines_first=True) == ("a", "b")
    assert stage_kinds(turns, 2, 2, 2, pipelines_first=False) == ()
    assert stage_kinds(halves, 2, 2, 1, pipelines_first=False) == ()


def test_components_of_a_slurm_job_are_counted_together() -> None:
    """4 nodes with 8 tasks and 2 with 4 are 40 tasks, not those of the last component."""
    text = (
        "#SBATCH --nodes=4 --ntasks-per-node=8 --gres=gpu:a100:8\n"
        "#SBATCH hetjob\n"
        "#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=v100:4\n"
    )
    found = allocation(text)
    assert (found.nodes, found.world, found.tasks_per_node) == (6, 40, None)
    assert found.kinds == (("a100", 4), ("v100", 2))
    assert allocation("#SBATCH --nodes=4 --gres=gpu:8\n") == Allocation(nodes=4, gpus_per_node=8, line=1)
