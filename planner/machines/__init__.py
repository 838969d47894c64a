"""What machines and schedulers print about themselves, one tool a file; a new one is a file and a row of READERS."""

import re

from planner.errors import SpecError
from planner.machines.amd_smi import AMD_SMI
from planner.machines.base import Devices, Level, Machine, Node, Nodes, Offer, Offers, Pair, Reader, Seen, Tie, Topology
from planner.machines.kubernetes import KUBERNETES
from planner.machines.kubernetes import LIMIT as MAX_BYTES
from planner.machines.nccl import NCCL
from planner.machines.nvidia_csv import NVIDIA_CSV
from planner.machines.nvidia_topo import NVIDIA_TOPO
from planner.machines.nvidia_xml import NVIDIA_XML
from planner.machines.rocm_smi import ROCM_SMI
from planner.machines.skypilot import SKYPILOT
from planner.machines.slurm_nodes import SLURM_NODES
from planner.machines.slurm_topology import SLURM_TOPOLOGY
from planner.machines.slurm_yaml import SLURM_YAML

READERS: tuple[Reader, ...] = (
    NVIDIA_TOPO,
    NVIDIA_XML,
    NCCL,
    ROCM_SMI,
    AMD_SMI,
    KUBERNETES,
    SLURM_TOPOLOGY,
    SLURM_NODES,
    SLURM_YAML,
    SKYPILOT,
    NVIDIA_CSV,
)

_NEAR_MISSES = (
    (r"\| NVIDIA-SMI +[0-9]", "is the overview of nvidia-smi; give nvidia-smi topo -m and nvidia-smi -q -x"),
    (r"(?m)^GPU [0-9]+: .*\(UUID:", "is nvidia-smi -L, which lacks memory and links; give nvidia-smi -q -x"),
    (r"(?m)^=+NVSMI LOG=+", "is nvidia-smi -q as text; give nvidia-smi -q -x"),
    (r"(?m)^(kind: (Node|List)$|- apiVersion: v1$)", "is YAML of Kubernetes; give kubectl get nodes -o json"),
    (r"(?m)^NAME +STATUS +ROLES", "is a table of kubectl, which lacks the devices; give kubectl get nodes -o json"),
    (r"(?m)^PARTITION +AVAIL", "is sinfo, which lacks the devices; give scontrol -o show node"),
    (r"(?m)^groups:", "is a cluster file already; there is nothing to import"),
)
"""What is often given instead, and what to give."""


def read_dump(text: str, origin: str) -> tuple[Reader, Seen]:
    """Return what a dump tells, and which tool's it is.

    Raises:
        SpecError: no reader knows it, or it is broken; with its place.

    """
    for reader in READERS:
        if reader.recognises(text):
            return reader, reader.read(text, origin)
    if not text.strip():
        raise SpecError.of(origin, "is empty; the tool may have failed, run it by itself to see")
    miss = next((message for pattern, message in _NEAR_MISSES if re.search(pattern, text)), "")
    names = "; ".join(reader.name for reader in READERS)
    raise SpecError.of(
        origin, miss or f"is none of the dumps that are read, or its beginning is missing; these are: {names}"
    )


__all__ = [
    "MAX_BYTES",
    "READERS",
    "Devices",
    "Level",
    "Machine",
    "Node",
    "Nodes",
    "Offer",
    "Offers",
    "Pair",
    "Reader",
    "Seen",
    "Tie",
    "Topology",
    "read_dump",
]
