"""Plans to be launched, on like nodes, unlike ones and boxes with two kinds of cards, and a program for them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from functools import cache
from pathlib import Path

import builders
import transcripts
from placement.plans import drawn_problem
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import Launch, Launcher, Part, Program, nodes_in_order, target
from planner.specs.cluster import read_cluster
from planner.specs.plan import PlanFile

PROGRAM = Program(
    command=("train.py", "--tensor-parallel", "2", "--layout", "Et*2|t*2L", "--config=plan.json"),
    environment=(("CUDA_DEVICE_MAX_CONNECTIONS", "1"), ("NOTE", "it's $HOME")),
    parts=(Part(name="plan.json", text='{"layers": [2, 2]}\n'),),
)
"""Its arguments and values hold what shells would take to pieces."""
LAB = read_cluster(str(transcripts.ROOT / "cluster_specs" / "lab-3080-4090.yaml"))
LIKE = read_cluster("2x4:h100-sxm-80gb")
UNLIKE = read_cluster("2x4:h100-sxm-80gb+2x2:a100-sxm-80gb")


def stage(group: str, first: int, last: int, tp: int = 1, split: int = 1) -> Stage:
    return Stage(group=group, first_layer=first, last_layer=last, strategy=Strategy(degrees=(("tp", tp),)), split=split)


def plan(*stages: Stage, dp: int) -> Plan:
    return Plan(stages=stages, schedule="1f1b", num_replicas=dp, micro_batch=1, num_microbatches=4, zero_stage=1)


def plan_file(found: Plan, cluster: Cluster) -> PlanFile:
    return PlanFile(
        plan=found,
        cluster=cluster,
        model=builders.model(4),
        job=builders.job(found.global_batch),
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


@cache
def files() -> dict[str, PlanFile]:
    """Return plans by name."""
    h100, a100 = (group.name for group in UNLIKE.groups)
    return {
        # Eight ranks on two nodes of four.
        "like": plan_file(plan(stage(LIKE.groups[0].name, 0, 3, tp=2), dp=4), LIKE),
        # Eight ranks on two nodes of four, then four ranks on two nodes of two.
        "unlike": plan_file(plan(stage(h100, 0, 2, tp=2), stage(a100, 3, 3), dp=4), UNLIKE),
        # Ranks go to and fro between the two kinds of cards in each box.
        "boxes": plan_file(plan(stage("rtx3080", 0, 1), stage("rtx4090", 2, 3), dp=4), LAB),
        # A node, by itself.
        "one": plan_file(plan(stage(LIKE.groups[0].name, 0, 3, tp=4), dp=1), LIKE),
    }


def launch(name: str, program: Program = PROGRAM) -> Launch:
    """Return the launch of a plan."""
    return of(files()[name], program)


def of(file: PlanFile, program: Program = PROGRAM) -> Launch:
    _, nodes = nodes_in_order(file, "a test")
    return Launch(file=file, nodes=nodes, program=program)


def drawn(count: int) -> list[Launch]:
    """Return launches of random plans whose ranks go from node to node, from the first seeds."""
    found: list[Launch] = []
    for seed in itertools.count():
        if len(found) == count:
            return found
        if problem := drawn_problem(seed):
            planning, made = problem
            file = dataclasses.replace(
                plan_file(made, planning.cluster), model=planning.model, job=planning.job, origin=f"seed {seed}"
            )
            with contextlib.suppress(CannotExpress):
                found.append(of(file))
    raise AssertionError


def write(name: str, started: Launch, folder: Path) -> None:
    """Write the parts of a launch, and the files of its program, into a folder."""
    launcher = target(name)
    assert isinstance(launcher, Launcher)
    for part in (*launcher.parts(started), *started.program.parts):
        (folder / part.name).write_text(part.text, encoding="utf-8")


def text(launcher: Launcher, name: str) -> str:
    """Return all parts of a launch as one text."""
    parts = launcher.parts(launch(name))
    return "".join(f"=== {part.name}{' (executable)' if part.executable else ''}\n{part.text}" for part in parts)
