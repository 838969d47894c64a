"""The batch script for Slurm, really run by a Slurm on the loopback, puts every rank where the rank table has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from export import launches
from frameworks import loopback_slurm, reports
from frameworks.loopback_slurm import Machine
from planner.domain.cluster import Cluster

FOLDER = Path(os.environ.get("PLANNER_FRAMEWORKS", "~/.cache/planner-frameworks")).expanduser()
SEARCHED = os.pathsep.join([os.environ["PATH"], *map(str, FOLDER.glob("*/bin"))])
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
