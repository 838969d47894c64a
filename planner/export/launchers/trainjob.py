"""A TrainJob for Kubeflow Trainer, whose nodes are all alike.

Facts: Kubeflow Trainer 2.2 and later, API reference and "Runtime Patches": the runtime ``torch-distributed`` has one
replicated job ``node`` with one container ``node``; it sets ``PET_NNODES``, ``PET_NODE_RANK``, ``PET_NPROC_PER_NODE``,
``PET_MASTER_ADDR`` and ``PET_MASTER_PORT``, which torchrun reads, and counts nodes by their completion index.
"""

from __future__ import annotations

from planner.errors import CannotExpress
from planner.export.base import Launch, Launcher, Part
from planner.export.kubernetes import (
    FOLDER,
    PLAN,
    apart,
    environment,
    limits,
    manifest,
    mounts,
    refuse_mixed,
    selector,
    to_put_in,
    volumes,
    words,
)
from planner.export.machines import Run, runs
from planner.export.scripts import described

NAME = "trainjob.yaml"
COMMENT = """\
# Starts ranks 0 to {last_rank} on {count}, each where `planner export --to rank-table` has it. Needs Kubeflow Trainer
# 2.2 or later and its runtime torch-distributed. Arguments of your own go to the end of args.
"""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the manifest.

    Raises:
        CannotExpress: nodes are used unlike one another, or have devices of several kinds.
    """
    found, program = runs(launch), launch.program
    if len(found) > 1:
        nodes = "; ".join(described(run) for run in found[:3])
        raise CannotExpress(
            "trainjob", [f"its nodes are all alike, those of the plan are not ({nodes}); use --to jobset"]
        )
    refuse_mixed("trainjob", found)
    run = found[0]
    python = (
        [{"name": "PYTHONPATH", "value": FOLDER}] if any(part.name.endswith(".py") for part in program.parts) else []
    )
    trainer = {
        "image": "IMAGE",
        "numNodes": len(run.nodes),
        "numProcPerNode": run.processes,
        "command": ["torchrun", "--rdzv-backend", "static"],
        "args": words(program),
        "env": [*python, *environment(program, run)],
        "resourcesPerNode": limits(run),
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": PLAN},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {key: value for key, value in trainer.items() if value != []},
            "runtimePatches": [{"manager": "planner.local/export", "trainingRuntimeSpec": _patch(launch, run)}],
        },
    }
    count = f"{len(run.nodes)} node{'s' if len(run.nodes) > 1 else ''}"
    comment = COMMENT.format(last_rank=run.processes * len(run.nodes) - 1, count=count)
    return (Part(name=NAME, text=manifest(comment + to_put_in(found), program, job)),)


def _patch(launch: Launch, run: Run) -> dict[str, object]:
    """Return what the runtime has not: on which nodes, and the files of the program."""
    pod = {
        "nodeSelector": selector(run),
        **apart([run]),
        "containers": [{"name": "node", "volumeMounts": mounts(launch.program)}],
        "volumes": volumes(launch.program),
    }
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return {"template": {"spec": {"replicatedJobs": [job]}}}


TRAINJOB = Launcher(name="trainjob", summary="a TrainJob for Kubeflow Trainer, of like nodes", parts=_parts)
