"""``topology.yaml`` of Slurm 25.05 and later: trees of switches, or blocks, by name.

Keys as in topology.yaml(5): a list of ``topology``, ``cluster_default`` and one of ``tree``, ``block`` and ``flat``.
"""

from __future__ import annotations

import re
from typing import Any

from planner.errors import SpecError
from planner.loader import Document, Path, parse
from planner.machines._hostlist import hostlist
from planner.machines._switches import block_topology, switch_topology
from planner.machines.base import Reader, Topology


def recognises(text: str) -> bool:
    """Tell whether a text is such a file."""
    return bool(re.search(r"(?m)^(-? +)topology *:", text)) and bool(re.search(r"(?m)^ +(tree|block|flat) *:", text))


def read(text: str, origin: str) -> Topology:
    """Return the levels of the default topology, or the first.

    Raises:
        SpecError: it is no such YAML.

    """
    document = parse(text, origin)
    if document.problems:
        raise SpecError(document.problems)
    entries = _list(document, ())
    at = next((n for n, one in enumerate(entries) if isinstance(one, dict) and one.get("cluster_default") is True), 0)
    entry = _mapping(document, (at,))
    others = [str(one.get("topology")) for n, one in enumerate(entries) if n != at and isinstance(one, dict)]
    notes = (f"the topology {entry.get('topology')} is read, {', '.join(others)} is not",) if others else ()
    found = _topology(document, entry, at)
    return Topology(levels=found.levels, domains=found.domains, notes=notes)


def _topology(document: Document, entry: dict[str, Any], at: int) -> Topology:
    if "tree" in entry:
        base: Path = (at, "tree", "switches")
        switches = {}
        for number in range(len(_list(document, base))):
            one = _mapping(document, (*base, number))
            names = [_hosts(document, (*base, number, key)) if key in one else () for key in ("nodes", "children")]
            switches[str(one.get("switch", number))] = (frozenset(names[0]), names[1])
        if not switches:
            raise SpecError([document.problem(base, "names no switch; add one with nodes")])
        return switch_topology(switches, document.origin)
    if "block" in entry:
        base = (at, "block", "blocks")
        blocks = [frozenset(_hosts(document, (*base, n, "nodes"))) for n in range(len(_list(document, base)))]
        sizes = _mapping(document, (at, "block")).get("block_sizes")
        return block_topology(
            blocks, [size for size in sizes if isinstance(size, int)] if isinstance(sizes, list) else []
        )
    return Topology()


def _value(document: Document, path: Path) -> Any:
    value = document.value
    for part in path:
        inside = (isinstance(value, dict) and part in value) or (isinstance(value, list) and isinstance(part, int))
        if not inside:
            raise SpecError([document.problem(path, "is missing; see topology.yaml(5)")])
        value = value[part]
    return value


def _list(document: Document, path: Path) -> list[Any]:
    value = _value(document, path)
    if not isinstance(value, list) or not value:
        raise SpecError([document.problem(path, "should be a list that is not empty; see topology.yaml(5)")])
    return value


def _mapping(document: Document, path: Path) -> dict[str, Any]:
    value = _value(document, path)
    if not isinstance(value, dict):
        raise SpecError([document.problem(path, "should be a mapping of keys to values; see topology.yaml(5)")])
    return value


def _hosts(document: Document, path: Path) -> tuple[str, ...]:
    value = _value(document, path)
    if not isinstance(value, str):
        raise SpecError([document.problem(path, "should be a list of nodes such as node[01-16]")])
    return hostlist(value, document.place(path))


SLURM_YAML = Reader(name="topology.yaml", recognises=recognises, read=read)
