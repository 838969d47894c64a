"""Names of groups, which may be any text, as words of hostfiles and in comments of scripts."""

from __future__ import annotations

from dataclasses import replace

import pytest

import uniform
from planner.errors import CannotExpress
from planner.export import EXPORTERS, Exporter
from planner.pipeline.written import bundle
from planner.specs.plan import PlanFile

EVIL = "new (8)\ntouch ran; $(touch ran)\r#"
ZERO = {"torchtitan": 2, "accelerate": 2, "galvatron": 2}
"""ZeRO stage of the plan for each target, else 1."""
LISTED = ("megatron", "torchtitan", "deepspeed", "accelerate", "hetu", "galvatron", "flagscale", "hostfile")


def renamed(name: str, target: str) -> PlanFile:
    """Return a plan of 16 replicas on two nodes of a group that is called `name`."""
    file = uniform.plan_file(uniform.plan(dp=16, zero=ZERO.get(target, 1)), 8)
    groups = tuple(replace(group, name=name) for group in file.cluster.groups)
    stages = tuple(replace(stage, group=name) for stage in file.plan.stages)
    return replace(file, cluster=replace(file.cluster, groups=groups), plan=replace(file.plan, stages=stages))


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in EXPORTERS if one.name in LISTED])
def test_a_name_with_blanks_is_one_word_of_a_hostfile(one: Exporter) -> None:
    """Each line is a host and its slots, and nothing of a name begins a line of its own."""
    found = {part.name: part.text for part in bundle(one, renamed(EVIL, one.name))}
    lines = [line for line in found["hostfile"].splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == [f"new-(8)-touch-ran;-$(touch-ran)-#-{node}" for node in (0, 1)]
    assert all(line.split()[1].startswith("slots=8") for line in lines)
    for name, text in found.items():
        if not name.startswith("rank_table"):
            assert not [line for line in text.splitlines() if line.startswith("touch")]


def test_a_comment_of_a_script_stays_one() -> None:
    """``accelerate.sh`` lists the machines."""
    exporter = next(one for one in EXPORTERS if one.name == "accelerate")
    script = next(part.text for part in bundle(exporter, renamed(EVIL, "accelerate")) if part.name == "accelerate.sh")
    assert script.splitlines()[1] == (
        "# Run on every machine with its number: 0 new-?8?-touch-ran?-??touch-ran?-?-0,"
        " 1 new-?8?-touch-ran?-??touch-ran?-?-1."
    )
    assert not [line for line in script.splitlines() if "touch" in line and not line.startswith("#")]


def test_names_that_become_the_same_are_refused() -> None:
    """Two groups whose names differ by blanks alone would be one host."""
    file = uniform.plan_file(uniform.plan(dp=16, zero=1), 8)
    (group,) = file.cluster.groups
    both = tuple(replace(group, name=name, num_nodes=1) for name in ("a b", "a-b"))
    (stage,) = file.plan.stages
    half = replace(file.plan, num_replicas=8, stages=(replace(stage, group="a b"),))
    plan = replace(half, other_pipelines=(replace(half, stages=(replace(stage, group="a-b"),)),))
    hostfile = next(one for one in EXPORTERS if one.name == "hostfile")
    with pytest.raises(CannotExpress, match="two nodes would be called a-b-0"):
        hostfile.parts(replace(file, plan=plan, cluster=replace(file.cluster, groups=both)))
