"""A task for SkyPilot, whose nodes are all alike.

Facts: SkyPilot documentation, "Distributed Multi-Node Jobs": ``SKYPILOT_NODE_RANK`` counts the nodes,
``SKYPILOT_NODE_IPS`` has their addresses in that order, one a line.
"""

from __future__ import annotations

from planner.errors import CannotExpress
from planner.export.base import Launch, Launcher, Part
from planner.export.machines import in_comment, runs
from planner.export.scripts import described, each_node, exports, module_path, torchrun
from planner.loader import dump_yaml

NAME = "task.yaml"
HERE = '"$PWD"'
"""The folder with the files of the program: that of the task, which is copied to every node and is where it runs."""
UNKNOWN = "ACCELERATOR"
"""To be put in by the user."""
ACCELERATORS = {
    "v100-sxm-16gb": "V100",
    "v100-sxm-32gb": "V100-32GB",
    "t4-16gb": "T4",
    "a10-24gb": "A10",
    "a10g-24gb": "A10G",
    "a100-sxm-40gb": "A100",
    "a100-sxm-80gb": "A100-80GB",
    "h100-sxm-80gb": "H100",
    "h200-sxm-141gb": "H200",
    "gh200-96gb": "GH200",
    "b200-sxm-180gb": "B200",
    "l4-24gb": "L4",
    "l40-48gb": "L40",
    "l40s-48gb": "L40S",
    "rtx3090-24gb": "RTX3090",
    "rtx4090-24gb": "RTX4090",
    "rtx5090-32gb": "RTX5090",
    "mi300x-192gb": "MI300X",
}
"""Device -> its usual name in SkyPilot's catalogues (``sky show-gpus``); some clouds have it under another one, too."""
NODE = (
    '--nnodes "$SKYPILOT_NUM_NODES"',
    '--node-rank "$SKYPILOT_NODE_RANK"',
    '--nproc-per-node "$NPROC"',
    '--master-addr "$MASTER_ADDR"',
    "--master-port 29500",
)
COMMENT = """\
# Starts ranks 0 to {last_rank} on {count}, each where `planner export --to rank-table` has it: sky launch {name}
# Runs in this folder as it is copied to every node: put your program into it. Your own arguments go to the end of run.
# Put in your own: infra or network_tier, if you need them; accelerators, if `sky show-gpus` lists {device} by
# another name.
"""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the task.

    Raises:
        CannotExpress: nodes are used unlike one another, or have devices of several kinds.
    """
    found, program = runs(launch), launch.program
    if len(found) > 1 or found[0].is_mixed:
        nodes = "; ".join(described(run) for run in found[:3])
        reason = f"its nodes are all alike, with one kind of devices, those of the plan are not ({nodes})"
        raise CannotExpress("skypilot", [f"{reason}; use --to torchrun, slurm or jobset"])
    run = found[0]
    device = run.groups[0].device.name
    script = [
        "set -eu",
        *each_node(found),
        *module_path(program, HERE),
        *exports(program.environment),
        'MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | sed -n 1p)',
        *torchrun(program, NODE, HERE),
    ]
    task = {
        "name": "plan",
        "num_nodes": len(run.nodes),
        "resources": {"accelerators": f"{ACCELERATORS.get(device, UNKNOWN)}:{run.num_asked}"},
        "workdir": ".",
        "run": "".join(f"{line}\n" for line in script),
    }
    count = f"{len(run.nodes)} node{'s' if len(run.nodes) > 1 else ''}"
    comment = COMMENT.format(
        last_rank=run.processes * len(run.nodes) - 1, count=count, name=NAME, device=in_comment(device)
    )
    return (Part(name=NAME, text=comment + dump_yaml(task)),)


SKYPILOT = Launcher(name="skypilot", summary="a task for SkyPilot, of like nodes", parts=_parts)
