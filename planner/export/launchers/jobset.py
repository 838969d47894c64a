"""A JobSet for Kubernetes: a replicated job for each run of like nodes, whose pods start one torchrun each.

Facts: JobSet v1alpha2, API reference: a pod of an Indexed Job knows its number as ``JOB_COMPLETION_INDEX``; the name by
which the coordinator is found is an annotation of every pod.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from planner.export.base import Launch, Launcher, Part
from planner.export.kubernetes import (
    FOLDER,
    PLAN,
    apart,
    environment,
    escaped,
    limits,
    manifest,
    mounts,
    refuse_mixed,
    selector,
    to_put_in,
    volumes,
)
from planner.export.machines import Run, runs
from planner.export.scripts import module_path, torchrun, unlike_workers

NAME = "jobset.yaml"
PORT = 29500
LONGEST = 20
"""Characters of the name of a replicated job: names of pods, which begin with it, are limited."""
COMMENT = """\
# Starts ranks 0 to {last_rank} on {count} nodes, each where `planner export --to rank-table` has it: node ranks
# go on from job to job. Needs JobSet (jobset.sigs.k8s.io). Arguments of your own go to the end of args, of each job.
"""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the manifest.

    Raises:
        CannotExpress: a node has devices of several kinds.
    """
    found = runs(launch)
    refuse_mixed("jobset", found)
    names = _names(found)
    last = launch.nodes[-1]
    job = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": PLAN},
        "spec": {
            "coordinator": {"replicatedJob": names[0], "jobIndex": 0, "podIndex": 0},
            "replicatedJobs": [
                {"name": name, "replicas": 1, "template": {"spec": _job(run, launch, found)}}
                for name, run in zip(names, found, strict=True)
            ],
        },
    }
    comment = COMMENT.format(last_rank=last.first_rank + len(last.devices) - 1, count=len(launch.nodes))
    return (Part(name=NAME, text=manifest(comment + to_put_in(found), launch.program, job)),)


def _job(run: Run, launch: Launch, found: tuple[Run, ...]) -> dict[str, Any]:
    program = launch.program
    options = (
        f"--nnodes {len(launch.nodes)}",
        f'--node-rank "$(({run.first} + JOB_COMPLETION_INDEX))"',
        f"--nproc-per-node {run.processes}",
        '--master-addr "$MASTER_ADDR"',
        f"--master-port {PORT}",
    )
    lines = [*unlike_workers(found), *module_path(program, FOLDER), *torchrun(program, options, FOLDER)]
    met = {"fieldRef": {"fieldPath": "metadata.annotations['jobset.sigs.k8s.io/coordinator']"}}
    container = {
        "name": "trainer",
        "image": "IMAGE",
        "command": ["bash", "-c"],
        "args": [escaped("".join(f"{line}\n" for line in lines)), "bash"],
        "env": [{"name": "MASTER_ADDR", "valueFrom": met}, *environment(program, run)],
        "resources": limits(run),
        "volumeMounts": mounts(program),
    }
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": selector(run),
        **apart(found),
        "containers": [container],
        "volumes": volumes(program),
    }
    count = len(run.nodes)
    return {
        "completionMode": "Indexed",
        "parallelism": count,
        "completions": count,
        "backoffLimit": 0,
        "template": {"spec": pod},
    }


def _names(found: tuple[Run, ...]) -> list[str]:
    """Return a name for each run: that of its group, and a number where the group has several."""
    plain = [_name(run) for run in found]
    several = Counter(plain)
    seen: Counter[str] = Counter()
    names = []
    for name in plain:
        names.append(f"{name}-{seen[name]}" if several[name] > 1 else name)
        seen[name] += 1
    return names


def _name(run: Run) -> str:
    return re.sub("[^a-z0-9]+", "-", run.groups[0].name.lower())[:LONGEST].strip("-") or "nodes"


JOBSET = Launcher(
    name="jobset", summary="a JobSet for Kubernetes: a replicated job for each kind of nodes", parts=_parts
)
