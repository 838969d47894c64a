"""The script for torchrun, really started on the loopback, puts every rank where the rank table has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from export import launches
from frameworks import reports

TIME_LIMIT = 120
"""[s] nodes that do not meet by then never will."""
SEARCHED = reports.searched()

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not shutil.which("torchrun", path=SEARCHED), reason="torchrun is not installed"),
]


def _environment(folder: Path, host: str) -> dict[str, str]:
    """Return an environment in which the host has another name."""
    folder.mkdir()
    (folder / "uname").write_text(f"#!/bin/sh\necho {host}\n", encoding="utf-8")
    (folder / "uname").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "PYTHON", "SLURM_"))}
    return kept | {"PATH": f"{folder}{os.pathsep}{SEARCHED}", "MASTER_ADDR": "127.0.0.1"}


@pytest.mark.parametrize("name", ["unlike", "boxes"])
def test_ranks_run_where_the_table_has_them(name: str, tmp_path: Path) -> None:
    """Two to four agents find their places by the names of their hosts, the last one is told its."""
    launch = launches.launch(name, reports.PROGRAM)
    launches.write("torchrun", launch, tmp_path)
    port = str(reports.free_port())
    last = len(launch.nodes) - 1
    agents = []
    for index, node in enumerate(launch.nodes):
        arguments = ["--node-rank", str(index)] if index == last else []
        host = "elsewhere" if index == last else f"{node.name}.example.org"
        agents.append(
            subprocess.Popen(
                ["bash", str(tmp_path / "launch.sh"), *arguments, "--mine", "x y"],
                cwd=tmp_path,
                env=_environment(tmp_path / node.name, host)
                | {"MASTER_PORT": port, "NODE_NAME": node.name, "REPORTS": str(tmp_path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    said = [agent.communicate(timeout=TIME_LIMIT)[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0] * len(agents), "\n".join(said)
    assert reports.found(tmp_path) == reports.expected(launch.file, "--mine", "x y")
