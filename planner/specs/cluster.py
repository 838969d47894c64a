"""Clusters: YAML, JSON or a one-liner to the domain, and back to a record."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from planner.domain.cluster import Cluster, DeviceGroup
from planner.errors import Problem, SpecError
from planner.loader import Document, Path, parse
from planner.specs import catalog
from planner.specs.calibration import calibration, calibration_record
from planner.specs.files import read_text
from planner.specs.kinds import refuse_other_kind

if TYPE_CHECKING:
    from planner.specs.cluster_record import ClusterRecord

_ONE_LINER = re.compile(r"[^/\\]*:[^/\\]*")
_PART = re.compile(r"\s*(?:([0-9]{1,9})\s*[x*]\s*)?([0-9]{1,9})\s*:\s*(\S(?:.*\S)?)\s*")
_EXAMPLE = "8x8:h100-sxm-80gb (nodes x devices per node : device)"


def read_cluster(source: str) -> Cluster:
    """Return the cluster that a file, ``-`` or a one-liner such as ``8x8:h100-sxm-80gb+4x8:a100-sxm-80gb`` describes.

    Raises:
        SpecError: with every problem and its place.

    """
    return read_written_cluster(source)[0]


def read_written_cluster(source: str) -> tuple[Cluster, dict[str, Any]]:
    """Return the cluster as `read_cluster` does, and the record as it is written, in which names may stay names.

    Raises:
        SpecError: with every problem and its place.

    """
    if not is_one_liner(source):
        text, origin = _read(source)
        document = parse(text, origin)
        refuse_other_kind(document, "cluster")
        return cluster_from_document(document), document.value
    found = _one_liner(source)
    groups = [
        {
            "name": group.name,
            "device": group.device.name,
            "nodes": group.num_nodes,
            "devices_per_node": group.devices_per_node,
        }
        for group in found.groups
    ]
    return found, {"name": found.name, "groups": groups}


def is_one_liner(source: str) -> bool:
    """Return whether a source is a one-liner, not a file or ``-``."""
    return source != "-" and _ONE_LINER.fullmatch(source) is not None and not FilePath(source[:200]).exists()


def _read(source: str) -> tuple[str, str]:
    """Return text and origin, with the one-liner as another remedy where there is no such file."""
    try:
        return read_text(source)
    except SpecError as error:
        if "no such file" not in error.problems[0].message:
            raise
        message = f"{error.problems[0].message} A one-liner looks like {_EXAMPLE}"
        raise SpecError.of(source, message.replace("? A", "? a").replace("input A", "input; a")) from None


def _one_liner(text: str) -> Cluster:
    """Return the cluster of groups joined by ``+``."""
    groups: list[DeviceGroup] = []
    problems: list[Problem] = []
    for number, part in enumerate(text.split("+")):
        group, message = _group(part, {group.name for group in groups})
        if group:
            groups.append(group)
        else:
            problems.append(Problem(f"{text[:80]} groups[{number}]", message))
    if problems:
        raise SpecError(problems)
    return Cluster(name=text.strip(), groups=tuple(groups))


def _group(part: str, taken: set[str]) -> tuple[DeviceGroup | None, str]:
    """Return the group of one part of a one-liner, with the usual links of its device, or None and what is wrong."""
    given = part.strip()[:60]
    match = _PART.fullmatch(part)
    if not match:
        return None, f"{given!r} is not a group; write {_EXAMPLE}"
    nodes, devices = int(match[1] or 1), int(match[2])
    if not nodes or not devices:
        return None, f"{given!r} has no devices; both counts should be at least 1"
    try:
        row = catalog.device_row(match[3])
    except SpecError as error:
        return None, error.problems[0].message
    if not row.intra_node or (nodes > 1 and not row.inter_node):
        return None, f"no link is usual for {row.device.name}; write YAML with intra_node and inter_node"
    intra_node = catalog.link(row.intra_node)
    name = row.device.name
    group = DeviceGroup(
        name=next(name for name in (name, *(f"{name}-{n}" for n in range(2, 999))) if name not in taken),
        device=row.device,
        num_nodes=nodes,
        devices_per_node=devices,
        intra_node=intra_node,
        inter_node=catalog.network(row.inter_node) if row.inter_node else catalog.no_network(intra_node.bandwidth),
    )
    return group, ""


def cluster_from_record(record: object, origin: str = "cluster", base: Path = ()) -> Cluster:
    """Return the cluster of a plain record, such as a plan file embeds.

    Raises:
        SpecError: with every problem and its place.

    """
    return cluster_from_document(Document(value=record, origin=origin), base)


def cluster_from_document(document: Document, base: Path = ()) -> Cluster:
    """Return the cluster that stands at `base` of a document.

    Raises:
        SpecError: with every problem and its place.

    """
    from planner.specs.cluster_parts import cluster
    from planner.specs.cluster_record import ClusterRecord
    from planner.specs.cluster_rules import rules
    from planner.specs.problems import validate

    record: ClusterRecord = validate(ClusterRecord, document, base=base, semantics=rules)
    found = cluster(record, default_name=_stem(document.origin), folder=FilePath(document.origin).parent)
    return replace(found, calibration=calibration(record.calibration)) if record.calibration else found


def _stem(origin: str) -> str:
    """Return the name of a cluster that gives none."""
    return "cluster" if origin.startswith("<") else FilePath(origin).name.split(".")[0] or "cluster"


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """Return a resolved cluster as a plain record that `cluster_from_record` reads back without loss."""
    from planner.specs.cluster_parts import record_of

    calibrated = {"calibration": calibration_record(cluster.calibration)} if cluster.calibration else {}
    return {**record_of(cluster), **calibrated}
