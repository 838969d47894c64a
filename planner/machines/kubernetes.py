"""``kubectl get nodes -o json``: the devices of each node that takes pods, by labels and allocatable resources.

Labels are those of NVIDIA's gpu-feature-discovery (``nvidia.com/gpu.product`` with its suffixes ``-SHARED`` and
``-MIG-...``, ``.count``, ``.memory`` [MiB], ``.clique``), of AMD's node labeller (``amd.com/gpu.product-name`` and
``.vram``), of GKE, and the well-known zone. Only these are read: annotations, addresses and everything else are not.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from planner.errors import Problem, SpecError
from planner.loader import Document, parse
from planner.machines.base import Devices, Level, Node, Nodes, Reader, Topology

LIMIT = 64 * 2**20
"""[bytes] that are read; a node is about 20 KiB, most of it names of images."""
RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
ZONE, CLIQUE = "topology.kubernetes.io/zone", "nvidia.com/gpu.clique"
PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
)
GKE = {"nvidia-tesla-a100": "NVIDIA A100-SXM4-40GB", "nvidia-h100-mega-80gb": "NVIDIA H100 80GB HBM3"}
"""Names of GKE that would mean another device elsewhere."""
_SHARED = "-SHARED"


def recognises(text: str) -> bool:
    """Tell whether a text is a list of nodes, or one."""
    return text.lstrip()[:1] == "{" and bool(re.search(r'"kind"\s*:\s*"(Node|NodeList)"', text))


def read(text: str, origin: str) -> Nodes:
    """Return the nodes that have devices and take pods.

    Raises:
        SpecError: it is no JSON, or no node has devices.

    """
    document = parse(text, origin, limit=LIMIT)
    if document.problems:
        raise SpecError(document.problems)
    value = document.value
    items = value.get("items") if isinstance(value, dict) and "items" in value else [value]
    nodes: list[Node] = []
    problems: list[Problem] = []
    left: Counter[str] = Counter()
    near: dict[str, dict[str, set[str]]] = {ZONE: defaultdict(set), CLIQUE: defaultdict(set)}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        labels, allocatable = _at(item, "metadata", "labels"), _at(item, "status", "allocatable")
        why, devices = _devices(labels, allocatable, item)
        if why == "?":
            message = f"has devices that no label names; label it {PRODUCTS[0]}=..., or run gpu-feature-discovery"
            problems.append(document.problem(("items", number), message))
        elif why:
            left[why] += 1
        elif devices:
            name = str(number)
            nodes.append(Node(name=name, devices=(devices,)))
            for label, sets in near.items():
                if isinstance(labels.get(label), str):
                    sets[labels[label]].add(name)
    if problems:
        raise SpecError(problems)
    notes = [f"nodes that {why} are left out: {count}" for why, count in left.items()]
    if not nodes:
        raise _none(document, notes)
    zones, cliques = ([frozenset(part) for part in near[label].values()] for label in (ZONE, CLIQUE))
    levels = (Level(name="zone", parts=tuple(zones)),) if zones else ()
    topology = Topology(levels=levels, domains=tuple(cliques))
    return Nodes(nodes=tuple(nodes), topology=topology, notes=tuple(notes))


def _none(document: Document, notes: list[str]) -> SpecError:
    why = "; ".join(notes) or f"no allocatable {' or '.join(RESOURCES)}"
    return SpecError.of(document.origin, f"has no node with devices that can be planned ({why})")


def _at(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return the mapping at `keys`, empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _devices(labels: Mapping[str, Any], allocatable: Mapping[str, Any], item: Any) -> tuple[str, Devices | None]:
    """Return the devices of a node, or why they do not count: a sentence, or ``?`` where no label names them."""
    count = next((found for key in RESOURCES if (found := _count(allocatable.get(key)))), 0)
    name = next((labels[key] for key in PRODUCTS if isinstance(labels.get(key), str)), "")
    why = ""
    if "-MIG-" in name or any(key.startswith("nvidia.com/mig-") and _count(one) for key, one in allocatable.items()):
        why = "offer MIG slices and not whole devices"
    elif count and _at(item, "spec").get("unschedulable") is True:
        why = "take no pods (unschedulable)"
    elif not count and _count(labels.get("nvidia.com/gpu.count")):
        why = "have no device that can be allocated"
    elif count and not name:
        why = "?"
    if why or not count:
        return why, None
    if name.endswith(_SHARED) or _count(labels.get("nvidia.com/gpu.replicas")) > 1:
        # Allocatable counts each device once for each that share it.
        count = _count(labels.get("nvidia.com/gpu.count")) or count
    return "", Devices(name=GKE.get(name, name.removesuffix(_SHARED)), count=count, memory_gib=_memory(labels))


def _count(value: object) -> int:
    """Return a quantity of whole devices, 0 if it is none."""
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,4}", text) else 0


def _memory(labels: Mapping[str, Any]) -> float:
    """Return [GiB] of a device, 0 if no label tells; NVIDIA writes MiB, AMD ``192G``."""
    nvidia, amd = (str(labels.get(key)) for key in ("nvidia.com/gpu.memory", "amd.com/gpu.vram"))
    if re.fullmatch("[0-9]{3,7}", nvidia):
        return int(nvidia) / 1024
    return float(amd[:-1]) if re.fullmatch("[0-9]{1,4}G", amd) else 0.0


KUBERNETES = Reader(name="kubectl get nodes -o json", recognises=recognises, read=read)
