"""Switches and blocks of any notation to levels above the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.errors import SpecError
from planner.machines.base import Level, Topology

NAMES = ("leaf", "spine", "core")
"""Usual names of the levels of switches, from the nodes up."""
Switches = Mapping[str, tuple[frozenset[str], tuple[str, ...]]]
"""Switch -> nodes and switches below it."""


def switch_topology(switches: Switches, origin: str) -> Topology:
    """Return a level for each height of switches, those that hold nodes alone being the lowest.

    Raises:
        SpecError: switches go round in a circle.

    """
    heights: dict[str, int] = {}
    nodes: dict[str, frozenset[str]] = {}
    waiting = list(switches)
    while waiting:
        ready = [name for name in waiting if all(one in nodes for one in switches[name][1] if one in switches)]
        if not ready:
            raise SpecError.of(
                origin, f"has switches below themselves: {', '.join(waiting[:4])}; each has one above it"
            )
        for name in ready:
            own, below = switches[name]
            known = [one for one in below if one in switches]
            nodes[name] = own.union(*(nodes[one] for one in known))
            heights[name] = 1 + max((heights[one] for one in known), default=-1)
        waiting = [name for name in waiting if name not in nodes]
    return Topology(
        levels=tuple(
            Level(
                name=NAMES[height] if height < len(NAMES) else f"level-{height + 1}",
                parts=tuple(nodes[name] for name in switches if heights[name] == height),
            )
            for height in range(max(heights.values()) + 1)
        )
    )


def block_topology(blocks: Sequence[frozenset[str]], sizes: Sequence[int]) -> Topology:
    """Return a level of blocks, and one for each larger size of planned blocks, which join neighbours."""
    levels = [Level(name="block", parts=tuple(blocks))]
    base = max(map(len, blocks), default=1) or 1
    for size in sorted({size for size in sizes if size >= 2 * base}):
        joined = size // base
        parts = [frozenset[str]().union(*blocks[at : at + joined]) for at in range(0, len(blocks), joined)]
        levels.append(Level(name=f"block-of-{size}", parts=tuple(parts)))
    return Topology(levels=tuple(levels), domains=tuple(blocks))
