"""``scontrol show topology`` and ``topology.conf``: which nodes are below which switch, or in which block.

Fields as in Slurm's topology.conf(5): ``SwitchName= Nodes= Switches=`` or ``BlockName= Nodes=`` and ``BlockSizes=``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.errors import SpecError
from planner.machines._hostlist import hostlist
from planner.machines._switches import block_topology, switch_topology
from planner.machines.base import Reader, Topology

_LINE = re.compile(r"\s*(SwitchName|BlockName|BlockSizes)=", re.IGNORECASE)
_FIELD = re.compile(r"([A-Za-z]+)=(\S+)")


def recognises(text: str) -> bool:
    """Tell whether a text is a topology."""
    return any(map(_LINE.match, text.splitlines()))


def read(text: str, origin: str) -> Topology:
    """Return the levels above the nodes.

    Raises:
        SpecError: a line cannot be read, or switches go round in a circle.

    """
    switches: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
    blocks: dict[str, frozenset[str]] = {}
    sizes: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not _LINE.match(line):
            continue
        place = f"{origin}:{number}"
        fields = {key.lower(): value for key, value in _FIELD.findall(line.split("#")[0])}
        if "blocksizes" in fields:
            sizes += [int(size) for size in fields["blocksizes"].split(",") if re.fullmatch("[0-9]{1,6}", size)]
            continue
        nodes = frozenset(_names(fields, "nodes", place))
        below = _names(fields, "switches", place)
        if not nodes and not below:
            raise SpecError.of(place, "has neither Nodes nor Switches; the topology is cut off, take it anew")
        for name in _names(fields, "switchname", place):
            switches[name] = (nodes, below)
        for name in _names(fields, "blockname", place):
            blocks[name] = nodes
    if not switches and not blocks:
        raise SpecError.of(origin, "names no switch and no block; the topology is cut off, take it anew")
    return switch_topology(switches, origin) if switches else block_topology(list(blocks.values()), sizes)


def _names(fields: Mapping[str, str], key: str, place: str) -> tuple[str, ...]:
    return hostlist(fields[key], f"{place} {key}") if key in fields else ()


SLURM_TOPOLOGY = Reader(name="scontrol show topology", recognises=recognises, read=read)
