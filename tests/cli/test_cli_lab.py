"""Two boxes with two RTX 3080 and two RTX 4090 each: what fits, who works with whom, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import transcripts

LAB = "cluster_specs/lab-3080-4090.yaml"
JOB = "--sequence-length 2048 --global-batch 64 --no-references"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return transcripts.scratch(tmp_path)


def test_three_billion_are_planned_on_all_cards(folder: Path) -> None:
    """Each stage, and so each tensor group, is on cards of one kind; all cards are faster than the RTX 4090s alone."""
    both = transcripts.run(f"planner plan {LAB} model_specs/llama-3.2-3b.json {JOB} --format json -o lab.yaml", folder)
    alone = transcripts.run(
        f"planner plan {LAB} model_specs/llama-3.2-3b.json {JOB} --format json -c 'group rtx3080 unused'", folder
    )
    plan, other = json.loads(both.stdout), json.loads(alone.stdout)
    assert {stage["group"] for stage in plan["prediction"]["stages"]} == {"rtx3080", "rtx4090"}
    assert {stage["group"] for stage in other["prediction"]["stages"]} == {"rtx4090"}
    assert plan["prediction"]["step_time_s"] < 0.9 * other["prediction"]["step_time_s"]
    assert "ranks" in transcripts.run("planner explain lab.yaml", folder).stdout
    table = transcripts.run("planner export lab.yaml --to rank-table", folder).stdout.splitlines()
    head, *rows = (line.split(",") for line in table)
    stage, device = [head.index(name) for name in ("pipeline", "replica", "stage")], head.index("device")
    together = {(*(row[at] for at in stage), row[device]) for row in rows}
    assert len(together) == len({tuple(key[:-1]) for key in together}), "a stage has cards of one kind"


def test_seven_billion_miss_some_memory(folder: Path) -> None:
    """Llama 2 7B hardly fits: the message says what it lacks, where, and what would help."""
    done = transcripts.run(f"planner plan {LAB} model_specs/llama-2-7b.json {JOB}", folder)
    assert done.code == 3
    assert "misses   2.7 GiB in stage" in done.stderr
    assert "3 nodes of rtx3080, 3 nodes of rtx4090" in done.stderr
