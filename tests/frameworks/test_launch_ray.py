"""The job for Ray, really run by a Ray of this machine, gives nodes of the right kind their ranks in their order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from export import launches
from frameworks import reports

RAY = reports.environments() / "ray" / "bin" / "ray"
SEARCHED = os.pathsep.join([str(RAY.parent), reports.searched()])
TIME_LIMIT = 150
"""[s] of a job."""

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not RAY.exists(), reason="Ray is not installed"),
    pytest.mark.skipif(not shutil.which("torchrun", path=SEARCHED), reason="torchrun is not installed"),
]


CLUSTER = """\
import json, os, subprocess, sys
from ray.cluster_utils import Cluster

small = {"object_store_memory": 80 * 1024**2, "num_cpus": 1}
cluster = Cluster(initialize_head=True, head_node_args=small | {"num_cpus": 0, "include_dashboard": False})
for name, kind, count in json.loads(os.environ["NODES"]):
    resources = {f"accelerator_type:{kind}": 1}
    cluster.add_node(num_gpus=count, resources=resources, env_vars={"NODE_NAME": name}, **small)
done = subprocess.run([sys.executable, "ray_job.py", *sys.argv[1:]], env=os.environ | {"RAY_ADDRESS": cluster.address})
cluster.shutdown()
sys.exit(done.returncode)
"""


def by_kind(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return reports with the kind of the node in the place of its name, and which one of the kind by their order."""
    nodes = list(dict.fromkeys(report["node"] for report in found))
    return [report | {"node": (report["node"].rpartition("-")[0], nodes.index(report["node"]))} for report in found]


def test_ranks_go_through_the_nodes_in_their_order(tmp_path: Path) -> None:
    """Which of like nodes comes first is Ray's choice; kinds, places in the node and arguments are the plan's."""
    launch = launches.launch("unlike", reports.PROGRAM)
    launches.write("ray", launch, tmp_path)
    # Nodes that start first are not those with the first ranks.
    kinds = {group.name: group.device.name.partition("-")[0].upper() for group in launch.file.cluster.groups}
    nodes = [(node.name, kinds[node.group], len(node.devices)) for node in launch.nodes[::-1]]
    environment = os.environ | {
        "PATH": SEARCHED,
        "RAY_USAGE_STATS_ENABLED": "0",
        "NODES": json.dumps(nodes),
        "REPORTS": str(tmp_path),
        "MASTER_PORT": str(reports.free_port()),
    }
    done = subprocess.run(
        [str(RAY.parent / "python"), "-c", CLUSTER, "--mine", "x y"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert by_kind(reports.found(tmp_path)) == by_kind(reports.expected(launch.file, "--mine", "x y"))
