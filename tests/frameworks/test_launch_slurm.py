"""The batch script for Slurm, really run by a Slurm on the loopback, puts every rank where the rank table has it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from export import launches
from frameworks import reports
from frameworks.asking import Validator
from planner.domain.cluster import Cluster
from planner.export import Launch, Launcher, target

PLANS = 200
SEARCHED = reports.searched()

pytestmark = pytest.mark.frameworks


def machines(cluster: Cluster) -> dict[str, str]:
    """Return the nodes of a cluster, named as in plans, and their devices, types by their short names."""
    devices: dict[str, list[str]] = {}
    for group in cluster.groups:
        for index in range(group.num_nodes):
            kind = f"{group.device.name.partition('-')[0]}:{group.devices_per_node}"
            devices.setdefault(f"{group.nodes or group.name}-{index}", []).append(kind)
    return {name: ",".join(held) for name, held in devices.items()}


def enough(launched: list[Launch]) -> list[dict[str, str]]:
    """Return machines of which each launch finds as many of each shape as its cluster has."""
    shapes: Counter[str] = Counter()
    for one in launched:
        shapes |= Counter(machines(one.file.cluster).values())
    return [
        {"name": f"s{shape}-[1-{count}]", "gpus": gpus} for shape, (gpus, count) in enumerate(sorted(shapes.items()))
    ]


def test_slurm_takes_the_scripts_of_random_plans(validator: Callable[[str], Validator]) -> None:
    """It would start every one of them, and not one that asks for more devices than a node has."""
    slurm, launcher = validator("slurm"), target("slurm")
    assert isinstance(launcher, Launcher)
    launched = launches.drawn(PLANS)
    nodes = enough(launched)
    scripts = {one.file.origin: launcher.parts(one)[0].text for one in launched}
    assert any("#SBATCH hetjob" in text for text in scripts.values())
    answers = {name: slurm.ask(text=text, nodes=nodes) for name, text in scripts.items()}
    assert {name: answer.message for name, answer in answers.items() if not answer.accepted} == {}
    more = re.sub(r"(--gres=gpu:\w+:)\d+", r"\g<1>99", next(iter(scripts.values())))
    assert "not available" in slurm.ask(text=more, nodes=nodes).message


@pytest.mark.skipif(not shutil.which("torchrun", path=SEARCHED), reason="torchrun is not installed")
@pytest.mark.parametrize("name", ["unlike", "boxes"])
def test_ranks_run_where_the_table_has_them(name: str, validator: Callable[[str], Validator], tmp_path: Path) -> None:
    """In a heterogeneous job of two components, and in a plain one with two kinds of cards a node."""
    launch, launcher = launches.launch(name, reports.PROGRAM), target("slurm")
    assert isinstance(launcher, Launcher)
    # The names of these nodes mean nothing to the network.
    variables = {"REPORTS": str(tmp_path), "MASTER_ADDR": "127.0.0.1", "PATH": SEARCHED}
    answer = validator("slurm").ask(
        text=launcher.parts(launch)[0].text,
        argv=[f"--export=ALL,{','.join(f'{key}={value}' for key, value in variables.items())}"],
        arguments=["--mine", "x y"],
        files={part.name: part.text for part in launch.program.parts},
        nodes=[{"name": name, "gpus": gpus} for name, gpus in machines(launch.file.cluster).items()],
        run=True,
    )
    assert answer.facts["state"] == "COMPLETED", answer.facts["printed"]
    assert reports.found(tmp_path) == reports.expected(launch.file, "--mine", "x y")
