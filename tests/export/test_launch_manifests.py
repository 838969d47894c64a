"""Manifests and tasks hold keys that their schemas know, values of the right types, and nodes in rank order."""

from __future__ import annotations

import re
from typing import Any

import pytest

from export import launches
from planner.export import Launcher, Part, Program, target
from planner.loader import load

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "plan"}}, "topologyKey": str}
        ]
    }
}
POD: dict[str, Any] = {
    "restartPolicy": "Never",
    "nodeSelector": {"*": str},
    "affinity?": APART,
    "containers": [
        {
            "name": str,
            "image": "IMAGE",
            "command": [str],
            "args": [str],
            "env": [{"name": str, "value?": str, "valueFrom?": {"fieldRef": {"fieldPath": str}}}],
            "resources": {"limits": {"*": str}},
            "volumeMounts": [{"name": str, "mountPath": str}],
        }
    ],
    "volumes": [{"name": str, "emptyDir?": {"medium": "Memory"}, "configMap?": {"name": str}}],
}
JOBSET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": str},
    "spec": {
        "coordinator": {"replicatedJob": str, "jobIndex": int, "podIndex": int},
        "replicatedJobs": [
            {
                "name": str,
                "replicas": int,
                "template": {
                    "spec": {
                        "completionMode": "Indexed",
                        "parallelism": int,
                        "completions": int,
                        "backoffLimit": int,
                        "template": {"spec": POD},
                    }
                },
            }
        ],
    },
}
PATCHED = {
    "nodeSelector": {"*": str},
    "affinity?": APART,
    "containers": [{"name": "node", "volumeMounts": [{"name": str, "mountPath": str}]}],
    "volumes": POD["volumes"],
}
TRAINJOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": str},
    "spec": {
        "runtimeRef": {"name": str},
        "trainer": {
            "image": "IMAGE",
            "numNodes": int,
            "numProcPerNode": int,
            "command": [str],
            "args": [str],
            "env?": [{"name": str, "value": str}],
            "resourcesPerNode": {"limits": {"*": str}},
        },
        "runtimePatches": [
            {
                "manager": str,
                "trainingRuntimeSpec": {
                    "template": {
                        "spec": {
                            "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": PATCHED}}}}]
                        }
                    }
                },
            }
        ],
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": str}, "data": {"*": str}}
TASK = {"name": str, "num_nodes": int, "resources": {"accelerators": str}, "workdir": ".", "run": str}
"""The keys that are written, all there unless they end in a question mark; * stands for any; a text for itself."""
KINDS = {"JobSet": JOBSET, "TrainJob": TRAINJOB, "ConfigMap": CONFIG_MAP, None: TASK}
MODULE = Part(name="plan.py", text="X = 1\n")
BARE = Program(command=("-m", "train"))


def documents(name: str, plan: str, program: Program = launches.PROGRAM) -> list[dict[str, Any]]:
    launcher = target(name)
    assert isinstance(launcher, Launcher)
    text = launcher.parts(launches.launch(plan, program))[0].text
    return [load(document, name).value for document in re.split("(?m)^---\n", text)]


def wrong(value: Any, shape: Any, place: str = "") -> list[str]:
    """Return the places that are not of a shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [place]
        if "*" in shape:
            return [found for key, held in value.items() for found in wrong(held, shape["*"], f"{place}.{key}")]
        known = {key.rstrip("?"): held for key, held in shape.items()}
        missing = [f"{place}.{key}" for key in shape if not key.endswith("?") and key not in value]
        unknown = [f"{place}.{key}" for key in value if key not in known]
        inner = [wrong(held, known[key], f"{place}.{key}") for key, held in value.items() if key in known]
        return [*missing, *unknown, *(found for places in inner for found in places)]
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return [place]
        return [found for at, held in enumerate(value) for found in wrong(held, shape[0], f"{place}[{at}]")]
    fits = type(value) is shape if isinstance(shape, type) else value == shape
    return [] if fits else [place]


@pytest.mark.parametrize("program", [launches.PROGRAM, BARE], ids=["with-files", "bare"])
@pytest.mark.parametrize(
    ("name", "plan"),
    [("jobset", "like"), ("jobset", "unlike"), ("jobset", "one"), ("trainjob", "like"), ("skypilot", "like")],
)
def test_documents_have_the_shape_of_their_schemas(name: str, plan: str, program: Program) -> None:
    """No key that is not known, none missing, texts where numbers would be taken for other things."""
    found = documents(name, plan, program)
    assert [place for one in found for place in wrong(one, KINDS[one.get("kind")])] == []
    assert ("ConfigMap" in {one.get("kind") for one in found}) == (bool(program.parts) and name != "skypilot")


def test_a_shape_is_strict() -> None:
    """A key too many, one too few, and a number for a text are found, each with its place."""
    (job,) = documents("jobset", "like", BARE)
    job["spec"]["suspended"] = False
    del job["spec"]["replicatedJobs"][0]["replicas"]
    pod = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 4
    inside = ".spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.limits.nvidia.com/gpu"
    assert wrong(job, JOBSET) == [".spec.suspended", ".spec.replicatedJobs[0].replicas", inside]


def test_node_ranks_go_on_from_job_to_job() -> None:
    """Two nodes of four, then two of two: the second job's pods are nodes 2 and 3, and all know of four."""
    job = documents("jobset", "unlike")[-1]["spec"]
    found = []
    for one in job["replicatedJobs"]:
        spec = one["template"]["spec"]
        container = spec["template"]["spec"]["containers"][0]
        lines = [line.strip(" \\") for line in container["args"][0].splitlines()]
        found.append((spec["completions"], spec["parallelism"], lines[3:6], container["resources"]["limits"]))
    assert found == [
        (
            2,
            2,
            ["--nnodes 4", '--node-rank "$((0 + JOB_COMPLETION_INDEX))"', "--nproc-per-node 4"],
            {"nvidia.com/gpu": "4"},
        ),
        (
            2,
            2,
            ["--nnodes 4", '--node-rank "$((2 + JOB_COMPLETION_INDEX))"', "--nproc-per-node 2"],
            {"nvidia.com/gpu": "2"},
        ),
    ]
    assert job["coordinator"] == {"replicatedJob": job["replicatedJobs"][0]["name"], "jobIndex": 0, "podIndex": 0}


@pytest.mark.parametrize("name", ["jobset", "trainjob"])
def test_pods_that_leave_room_keep_apart(name: str) -> None:
    """Three of four devices a node: pods stay apart, as they do of themselves where each takes all."""
    group = launches.LIKE.groups[0].name
    half = launches.plan(launches.stage(group, 0, 1, tp=3), launches.stage(group, 2, 3, tp=3), dp=1)
    launcher = target(name)
    assert isinstance(launcher, Launcher)
    for plan, apart in ((half, True), (launches.files()["like"].plan, False)):
        text = launcher.parts(launches.of(launches.plan_file(plan, launches.LIKE)))[0].text
        assert ("podAntiAffinity" in text) == apart


@pytest.mark.parametrize("name", ["jobset", "trainjob"])
def test_files_of_the_program_are_mounted(name: str) -> None:
    """They are in a ConfigMap, word for word; a module among them is found by Python."""
    text = '{"a": 1}\n\n# b: [\n  c\n'
    program = Program(command=("-m", "train", "--file", "a.txt"), parts=(Part(name="a.txt", text=text), MODULE))
    config, job = documents(name, "like", program)
    assert config["data"] == {"a.txt": text, "plan.py": "X = 1\n"}
    assert "/plan/a.txt" in str(job)
    assert "PYTHONPATH" in str(job)
