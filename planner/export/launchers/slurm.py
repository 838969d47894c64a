"""A batch script for Slurm: one torchrun a node, unlike nodes as components of a heterogeneous job.

Facts: Slurm documentation, "Heterogeneous Job Support": components are separated by ``#SBATCH hetjob``, at most 128
of them (MAX_HET_JOB_COMPS), and start together at a cycle of the backfill scheduler; ``SLURM_JOB_NODELIST`` is that of
the first. In one step over all components ``SLURM_NODEID`` and ``SLURM_NNODES`` count through them in their order.
"""

from __future__ import annotations

from planner.domain.cluster import Cluster, DeviceGroup
from planner.errors import CannotExpress
from planner.export.base import Launch, Launcher, Part
from planner.export.machines import Run, as_word, runs
from planner.export.scripts import described, each_node, exports, module_path, torchrun, unlike_workers

NAME = "job.sbatch"
MOST_COMPONENTS = 128
HERE = '"$SLURM_SUBMIT_DIR"'
"""The folder with the files of the program: where the job is submitted."""
GRES = {"huawei": "npu", "intel": "hpu"}
"""Vendor -> usual name of its devices as generic resources, where it is not gpu."""
NODE = (
    '--nnodes "$SLURM_NNODES"',
    '--node-rank "$NODE_RANK"',
    '--nproc-per-node "$NPROC"',
    '--master-addr "$MASTER_ADDR"',
    '--master-port "$MASTER_PORT"',
)

HEAD = """\
#!/usr/bin/env bash
# Starts ranks 0 to {last_rank} on {count}, ranks where `planner export --to rank-table` has them:
#
#     sbatch {name} [ARGUMENT ...]
#
# Submit it in the folder of the program{files}; arguments of your own are passed on. Types of
# devices should be named as in your gres.conf. Put what your site asks for in the place of PARTITION, ACCOUNT and
# HH:MM:SS, and take one of the two # before it away.
##SBATCH --account=ACCOUNT
##SBATCH --time=HH:MM:SS
"""

COMPONENT = """\
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gres={gres}
#SBATCH --exclusive
#SBATCH --mem=0
##SBATCH --partition=PARTITION
"""

STEP = """\
# The nodes meet at the first one, unless MASTER_ADDR names another of its addresses.
MASTER_ADDR=${{MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)}}
MASTER_PORT=${{MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}}
export MASTER_ADDR MASTER_PORT
srun {groups}--kill-on-bad-exit=1 --cpu-bind=none bash -c "set -eu; $(declare -f start); start \\"\\$@\\"" bash "$@"
"""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the batch script: the components in the order of the ranks, what a node does, and one step over all.

    Raises:
        CannotExpress: there are more runs of like nodes than components in a job.
    """
    found, program = runs(launch), launch.program
    if len(found) > MOST_COMPONENTS:
        message = f"the ranks change between kinds of nodes {len(found) - 1} times; a job has {MOST_COMPONENTS} parts"
        raise CannotExpress("slurm", [f"{message} at most, so start launch.sh of --to torchrun on every node"])
    last = launch.nodes[-1]
    nodes = f"{len(launch.nodes)} node{'s' if len(launch.nodes) > 1 else ''}"
    files = f", with {' and '.join(part.name for part in program.parts)} in it" if program.parts else ""
    start = [
        "NODE_RANK=$SLURM_NODEID",
        *each_node(found),
        *unlike_workers(found),
        *module_path(program, HERE),
        *exports(program.environment),
        *torchrun(program, NODE, HERE),
    ]
    text = [
        HEAD.format(last_rank=last.first_rank + len(last.devices) - 1, count=nodes, name=NAME, files=files),
        "#SBATCH hetjob\n".join(_component(run, launch.file.cluster) for run in found),
        "set -euo pipefail\n",
        "".join(f"{line}\n" for line in ["start() {", *(f"    {line}" for line in start), "}"]),
        STEP.format(groups=f"--het-group=0-{len(found) - 1} " if len(found) > 1 else ""),
    ]
    return (Part(name=NAME, text="\n".join([text[0] + text[1], *text[2:]])),)


def _component(run: Run, cluster: Cluster) -> str:
    gres = ",".join(f"{_resource(group, cluster)}:{count}" for group, count in run.asked)
    return f"# {described(run)}\n" + COMPONENT.format(nodes=len(run.nodes), gres=gres)


def _resource(group: DeviceGroup, cluster: Cluster) -> str:
    """Return the name and type of devices: the beginning of their name, or all of it where others begin alike."""
    device = group.device
    short = device.name.partition("-")[0]
    alike = {other.device.name for other in cluster.groups if other.device.name.partition("-")[0] == short}
    return f"{GRES.get(device.vendor, 'gpu')}:{as_word(short if len(alike) == 1 else device.name)}"


SLURM = Launcher(name="slurm", summary="a batch script; unlike nodes are a heterogeneous job", parts=_parts)
