"""Kubernetes' models and SkyPilot take the launches of random plans; their scripts put ranks where they should be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from export import launches
from frameworks import reports
from frameworks.asking import Validator
from planner.errors import CannotExpress
from planner.export import Launch, Launcher, target
from planner.loader import load

PLANS = 150
SEEDS = 1000
SEARCHED = reports.searched()
TIME_LIMIT = 120
"""[s] nodes that do not meet by then never will."""

pytestmark = pytest.mark.frameworks


def text(name: str, launch: Launch) -> str | None:
    """Return the text of a launch; None if it is refused."""
    launcher = target(name)
    assert isinstance(launcher, Launcher)
    try:
        return launcher.parts(launch)[0].text
    except CannotExpress:
        return None


def documents(name: str, launch: Launch) -> list[dict[str, Any]]:
    written = text(name, launch)
    assert written is not None
    return [load(document, name).value for document in re.split("(?m)^---\n", written)]


@pytest.mark.parametrize(
    ("framework", "name"), [("kubernetes", "jobset"), ("kubernetes", "trainjob"), ("skypilot", "skypilot")]
)
def test_launches_of_random_plans_are_taken(framework: str, name: str, validator: Callable[[str], Validator]) -> None:
    """All that are not refused, and none with a key that the schema does not know."""
    judge = validator(framework)
    found = [written for launch in launches.drawn(SEEDS) if (written := text(name, launch))][:PLANS]
    assert len(found) == PLANS
    assert {answer.message for written in found if not (answer := judge.ask(text=written)).accepted} == set()
    typo = (
        found[0].replace("parallelism:", "paralelism:").replace("numNodes:", "nodes:").replace("num_nodes:", "nodes:")
    )
    assert not judge.ask(text=typo).accepted


def agents(name: str, launch: Launch, folder: Path) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Yield the name of each node, its command, and its environment, as the launcher's host would have them."""
    job = documents(name, launch)[-1]
    if name == "skypilot":
        addresses = "\n".join(["127.0.0.1"] * len(launch.nodes))
        assert job["num_nodes"] == len(launch.nodes)
        for index, node in enumerate(launch.nodes):
            own = {"SKYPILOT_NODE_RANK": str(index), "SKYPILOT_NUM_NODES": str(len(launch.nodes))}
            script = job["run"].replace("29500", folder.name)
            yield node.name, ["bash", "-c", script, "bash", "--mine", "x y"], own | {"SKYPILOT_NODE_IPS": addresses}
        return
    names = iter(node.name for node in launch.nodes)
    for one in job["spec"]["replicatedJobs"]:
        container = one["template"]["spec"]["template"]["spec"]["containers"][0]
        variables = {pair["name"]: plain(pair["value"]) for pair in container["env"] if "value" in pair}
        for index in range(one["template"]["spec"]["completions"]):
            own = {"JOB_COMPLETION_INDEX": str(index), "MASTER_ADDR": "127.0.0.1"}
            script, *rest = [plain(word).replace("29500", folder.name) for word in container["args"]]
            command = [*container["command"], script.replace("/plan/", f"{folder}/"), *rest, "--mine", "x y"]
            yield next(names), command, variables | own


def plain(value: str) -> str:
    """Return what Kubernetes makes of a text with no variable of its own in it."""
    return value.replace("$$", "$")


@pytest.mark.skipif(not shutil.which("torchrun", path=SEARCHED), reason="torchrun is not installed")
@pytest.mark.parametrize(("name", "plan"), [("jobset", "unlike"), ("skypilot", "like")])
def test_ranks_run_where_the_table_has_them(name: str, plan: str, tmp_path: Path) -> None:
    """What each pod or node of a task would run, started with what its host would set."""
    launch = launches.launch(plan, reports.PROGRAM)
    folder = tmp_path / str(reports.free_port())
    folder.mkdir()
    for part in launch.program.parts:
        (folder / part.name).write_text(part.text, encoding="utf-8")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "PYTHON"))}
    kept |= {"PATH": SEARCHED, "REPORTS": str(folder)}
    started = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=kept | variables | {"NODE_NAME": node},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node, command, variables in agents(name, launch, folder)
    ]
    said = [agent.communicate(timeout=TIME_LIMIT)[0] for agent in started]
    assert [agent.returncode for agent in started] == [0] * len(launch.nodes), "\n".join(said)
    assert reports.found(folder) == reports.expected(launch.file, "--mine", "x y")
