"""What the launchers for Kubernetes share: devices and labels of nodes, the program's files, how text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import CannotExpress
from planner.export.base import Program
from planner.export.machines import Run, as_word, num_devices
from planner.export.scripts import with_files
from planner.loader import dump_yaml

PLAN = "plan"
"""Name of what is created."""
FOLDER = "/plan"
"""Where the files of the program are mounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """How the nodes of a vendor are told apart."""

    resource: str
    """That the vendor's device plugin hands out."""
    label: str
    """Of nodes, with the name of their product."""
    names: str = ""
    """Beginnings of the product's names, as a pattern; empty where no label is put by the vendor's own tools."""
    blank: str = ""
    """What stands for a blank in the label."""


OWN_LABEL = "accelerator"
"""Label of nodes where the vendor's tools put none."""
VENDORS = {
    "nvidia": Vendor(resource="nvidia.com/gpu", label="nvidia.com/gpu.product", names="NVIDIA |Tesla ", blank="-"),
    "amd": Vendor(resource="amd.com/gpu", label="amd.com/gpu.product-name", names="AMD ", blank="_"),
    "intel": Vendor(resource="habana.ai/gaudi", label=OWN_LABEL),
    "huawei": Vendor(resource="huawei.com/Ascend910", label=OWN_LABEL),
}
"""Sources: NVIDIA GPU feature discovery and AMD node labeller (labels), the device plugins of NVIDIA, AMD, Intel Gaudi
and Ascend (resources)."""


def refuse_mixed(target: str, runs: Sequence[Run]) -> None:
    """Stop where a node has devices of several kinds.

    Raises:
        CannotExpress: with the remedy.
    """
    reasons = [
        f"{run.nodes[0].name} has {' and '.join(group.device.name for group in run.groups)}, and Kubernetes hands out"
        " the devices of a node without telling kinds apart; start launch.sh of --to torchrun on every node"
        for run in runs
        if run.is_mixed
    ]
    if reasons:
        raise CannotExpress(target, reasons)


def selector(run: Run) -> dict[str, str]:
    """Return the label that the nodes of a run have, with the product's name as its vendor's tools write it."""
    from planner.specs.catalog import device_rows

    device = run.groups[0].device
    vendor = _vendor(run)
    aliases = next((row.aliases for row in device_rows() if row.device.name == device.name), ())
    official = [name for name in aliases if vendor.names and re.match(vendor.names, name)]
    return {vendor.label: official[0].replace(" ", vendor.blank) if official else as_word(device.name)}


def limits(run: Run) -> dict[str, dict[str, str]]:
    """Return the devices that a node is asked for."""
    return {"limits": {_vendor(run).resource: str(run.num_asked)}}


def environment(program: Program, run: Run) -> list[dict[str, Any]]:
    """Return the variables of a container."""
    return [
        {"name": name, "value": value.replace("$", "$$")} for name, value in (*program.environment, *run.environment)
    ]


def escaped(script: str) -> str:
    """Return a script such that Kubernetes, which replaces $(NAME) and $$ in arguments, leaves it as it is."""
    return re.sub(r"\$(?=\$|\((?!\())", "$$", script)


def words(program: Program) -> list[str]:
    """Return the command of a program, word by word, its files being those that are mounted."""
    return [word.replace("$", "$$") for word in with_files(program, FOLDER)]


def mounts(program: Program) -> list[dict[str, str]]:
    """Return where a container finds the files of the program, and memory that its processes share."""
    files = [{"name": PLAN, "mountPath": FOLDER}] if program.parts else []
    return [{"name": "shared-memory", "mountPath": "/dev/shm"}, *files]  # noqa: S108 processes exchange data there


def volumes(program: Program) -> list[dict[str, Any]]:
    """Return what `mounts` mounts."""
    files = [{"name": PLAN, "configMap": {"name": PLAN}}] if program.parts else []
    return [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}, *files]


def apart(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what keeps pods of the job on nodes of their own, where they leave room for one another."""
    if all(run.num_asked == num_devices(run.groups) for run in runs):
        return {}
    others = {
        "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": PLAN}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [others]}}}


def manifest(comment: str, program: Program, job: dict[str, Any]) -> str:
    """Return a comment, the files of the program if it has any, and the job, as one text of YAML."""
    files = {part.name: part.text for part in program.parts}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PLAN}, "data": files}
    documents = [*([config] if files else []), job]
    return comment + "---\n".join(dump_yaml(document) for document in documents)


def to_put_in(runs: Iterable[Run]) -> str:
    """Return comment lines with what a user has to fill in or to check."""
    labels = dict.fromkeys(_vendor(run).label for run in runs)
    check = "".join(f"#   {label}: is it as `kubectl get nodes -L {label}` shows?\n" for label in labels)
    return (
        f"# Put in your own: IMAGE, which has torch and your program; a namespace, if not the default. Check:\n{check}"
    )


def _vendor(run: Run) -> Vendor:
    return VENDORS.get(run.groups[0].device.vendor, VENDORS["nvidia"])
