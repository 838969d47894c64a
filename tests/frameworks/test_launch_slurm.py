"""The batch script for Slurm, really run by a Slurm on the loopback, puts every rank where the rank table has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from export import launches
from frameworks import loopback_slurm, reports
from frameworks.loopback_slurm import Machine
from planner.domain.cluster import Cluster
from planner.export import Launch, Launcher, target

FOLDER = Path(os.environ.get("PLANNER_FRAMEWORKS", "~/.cache/planner-frameworks")).expanduser()
SEARCHED = os.pathsep.join([os.environ["PATH"], *map(str, FOLDER.glob("*/bin"))])
PLANS = 200
TIME_LIMIT = 90
"""[s] of a job."""

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not loopback_slurm.is_there(), reason="Slurm is not installed, or this is not root"),
]


def machines(cluster: Cluster) -> list[Machine]:
    """Return the nodes of a cluster, named as in plans, types of devices by their short names."""
    devices: dict[str, list[tuple[str, str, int]]] = {}
    for group in cluster.groups:
        for index in range(group.num_nodes):
            kind = ("gpu", group.device.name.partition("-")[0], group.devices_per_node)
            devices.setdefault(f"{group.nodes or group.name}-{index}", []).append(kind)
    return [Machine(name=name, devices=tuple(held)) for name, held in devices.items()]


def enough(launched: list[Launch]) -> list[Machine]:
    """Return machines of which each launch finds as many of each shape as its cluster has."""
    shapes: Counter[tuple[tuple[str, str, int], ...]] = Counter()
    for one in launched:
        shapes |= Counter(machine.devices for machine in machines(one.file.cluster))
    return [
        Machine(name=f"s{shape}-{index}", devices=devices)
        for shape, (devices, count) in enumerate(sorted(shapes.items()))
        for index in range(count)
    ]


def test_slurm_takes_the_scripts_of_random_plans(tmp_path: Path) -> None:
    """It would start every one of them, and not one that asks for a device more than a node has."""
    launched = launches.drawn(PLANS)
    slurm = target("slurm")
    assert isinstance(slurm, Launcher)
    scripts = {one.file.origin: slurm.parts(one)[0].text for one in launched}
    assert any("hetjob" in text for text in scripts.values())
    with loopback_slurm.controller(tmp_path, enough(launched), running=False) as environment:

        def refusal(text: str) -> str:
            (tmp_path / "job.sbatch").write_text(text, encoding="utf-8")
            asked = ["sbatch", "--test-only", str(tmp_path / "job.sbatch")]
            done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=60, check=False)
            return done.stderr if done.returncode else ""

        assert {name: said for name, text in scripts.items() if (said := refusal(text))} == {}
        one = next(iter(scripts.values()))
        assert "not available" in refusal(re.sub(r"(--gres=gpu:\w+:)\d+", r"\g<1>99", one))


@pytest.mark.skipif(not shutil.which("torchrun", path=SEARCHED), reason="torchrun is not installed")
@pytest.mark.parametrize("name", ["unlike", "boxes"])
def test_ranks_run_where_the_table_has_them(name: str, tmp_path: Path) -> None:
    """In a heterogeneous job of two components, and in a plain one with two kinds of cards a node."""
    launch = launches.launch(name, reports.PROGRAM)
    launches.write("slurm", launch, tmp_path)
    with loopback_slurm.controller(tmp_path / "slurm", machines(launch.file.cluster)) as environment:
        done = subprocess.run(
            ["sbatch", "--wait", "--output=job.log", "job.sbatch", "--mine", "x y"],
            cwd=tmp_path,
            env=environment | {"PATH": SEARCHED, "REPORTS": str(tmp_path), "MASTER_ADDR": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        log = (tmp_path / "job.log").read_text(encoding="utf-8") if (tmp_path / "job.log").exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + log
    assert reports.found(tmp_path) == reports.expected(launch.file, "--mine", "x y")
