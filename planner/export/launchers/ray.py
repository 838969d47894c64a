"""A job for Ray: a group of bundles, one a node, in each of which one torchrun is started.

Ray Train counts its workers as it likes, so it is not used: a bundle has a number, which is the node rank. Facts: Ray
documentation, "Placement Groups" and "Accelerator Support" (resources ``accelerator_type:NAME``).
"""

from __future__ import annotations

from planner.domain.cluster import Cluster
from planner.export.base import Launch, Launcher, Part
from planner.export.machines import Run, as_word, runs
from planner.export.scripts import described, with_files

NAME = "ray_job.py"
TYPED = ("h100", "a100", "v100", "t4", "l4", "a10g")
"""Beginnings of the names of devices for which Ray's constants have a type (`ray.util.accelerators`)."""
RESOURCES = {"intel": "HPU", "huawei": "NPU"}
"""Vendor -> what Ray calls its devices, where it is not GPU."""

SCRIPT = '''\
"""Starts ranks 0 to {last_rank} on {count} nodes, each where `planner export --to rank-table` has it.

    ray job submit --working-dir . -- python {name} [ARGUMENT ...]

Submit the folder with the files of the program; arguments of your own are passed on.{kinds}
"""

import os
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# In the order of the ranks: nodes, what Ray is asked for on each, ranks on each, and variables of these.
NODES = [
{nodes}
]
COMMAND = [
{command}
]
ENVIRONMENT = {environment}


def address():
    """Return where the nodes can meet."""
    return ray.util.get_node_ip_address()


def start(options, environment, arguments):
    """Start the ranks of a node, and wait for them."""
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    kept = {{name: value for name, value in os.environ.items() if name != "TORCH_ELASTIC_WORKER_IDENTICAL"}}
    subprocess.run(
        ["torchrun", "--rdzv-backend", "static", *options, *COMMAND, *arguments],
        env={{**kept, "PYTHONPATH": path, **ENVIRONMENT, **environment}},
        check=True,
    )


def main():
    """Ask for the nodes, and start one torchrun on each."""
    ray.init()
    every = [node for count, *node in NODES for _ in range(count)]
    group = placement_group([asked for asked, _, _ in every], strategy="STRICT_SPREAD")
    ray.get(group.ready())

    def on(rank, function, asked):
        resources = {{name: amount for name, amount in asked.items() if name not in ("CPU", "GPU")}}
        strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        return ray.remote(function).options(
            num_cpus=asked["CPU"],
            num_gpus=asked.get("GPU", 0),
            resources=resources,
            max_retries=0,
            scheduling_strategy=strategy,
        )

    master = ray.get(on(0, address, {{"CPU": 1}}).remote())
    left = []
    for rank, (asked, processes, environment) in enumerate(every):
        options = ["--nnodes", len(every), "--node-rank", rank, "--nproc-per-node", processes]
        options += ["--master-addr", master, "--master-port", os.environ.get("MASTER_PORT", 29500)]
        left.append(on(rank, start, asked).remote([str(option) for option in options], environment, sys.argv[1:]))
    while left:
        done, left = ray.wait(left)
        ray.get(done)


if __name__ == "__main__":
    main()
'''
KINDS = """
Nodes are told apart by what Ray finds of them (accelerator_type) or by a resource of your own; start them by
`ray start ... --resources='{{"{first}": 1}}'`, if they have {which}."""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the job, a program in Python."""
    found, program, cluster = runs(launch), launch.program, launch.file.cluster
    last = launch.nodes[-1]
    own = [kind for run in found if (kind := _kind(run, cluster)) and ":" not in kind]
    text = SCRIPT.format(
        last_rank=last.first_rank + len(last.devices) - 1,
        count=len(launch.nodes),
        name=NAME,
        kinds=KINDS.format(first=own[0], which=" or ".join(dict.fromkeys(own))) if own else "",
        nodes="\n".join(_node(run, cluster) for run in found),
        command="\n".join(f"    {word!r}," for word in with_files(program, ".")),
        environment=dict(program.environment),
    )
    return (Part(name=NAME, text=text),)


def _node(run: Run, cluster: Cluster) -> str:
    resource = RESOURCES.get(run.groups[0].device.vendor, "GPU")
    kind = _kind(run, cluster)
    asked: dict[str, float] = {"CPU": 1, resource: run.num_asked, **({kind: 0.001} if kind else {})}
    line = (len(run.nodes), asked, run.processes, dict(run.environment))
    return f"    # {described(run)}\n    {line!r},"


def _kind(run: Run, cluster: Cluster) -> str:
    """Return the resource that only nodes of this kind have; empty where all nodes are alike."""
    homes = {group.nodes or group.device.name for group in cluster.groups}
    group = run.groups[0]
    if len(homes) == 1:
        return ""
    if run.is_mixed:
        return as_word(group.nodes)
    short = group.device.name.partition("-")[0]
    alike = {other.device.name for other in cluster.groups if other.device.name.partition("-")[0] == short}
    return f"accelerator_type:{short.upper()}" if short in TYPED and len(alike) == 1 else as_word(group.device.name)


RAY = Launcher(name="ray", summary="a job for Ray that starts one torchrun a node", parts=_parts)
