"""Blocks of devices onto the nodes of a group, in a given sequence; and onto devices inside each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from planner.checks.packing import pack
from planner.domain.cluster import DeviceGroup

Block = tuple[int, ...]
"""Devices of a copy of a stage, in the count of their group: node by node, from 0."""


@lru_cache(maxsize=4)
def devices_of(widths: tuple[int, ...], group: DeviceGroup) -> tuple[Block, ...]:
    """Return the devices of each block of `widths` devices.

    A block wider than a node takes whole ones. The blocks fit, as the check ``devices`` has found. Where all are as
    wide, as they mostly are, the same answer serves every order.
    """
    size = group.devices_per_node
    pieces = [min(width, size) for width in widths for _ in range(-(-width // size))]
    on_node: dict[int, list[int]] = {}
    for piece, node in enumerate(nodes_of(pieces, group.num_nodes, size)):
        on_node.setdefault(node, []).append(piece)
    units = (*(level.num_devices for level in group.intra_node.levels), size)
    found: list[Block] = [()] * len(pieces)
    for node, held in on_node.items():
        for piece, places in zip(held, within_node(tuple([pieces[at] for at in held]), units), strict=True):
            found[piece] = tuple([node * size + place for place in places])
    if len(pieces) == len(widths):
        return tuple(found)
    whole = iter(found)
    return tuple(tuple(device for _ in range(-(-width // size)) for device in next(whole)) for width in widths)


def nodes_of(widths: Sequence[int], num_nodes: int, node_size: int) -> list[int]:
    """Return the node of each block: the first one that has room; or, where that needs too many, that of a packing."""
    kinds = Counter(widths)
    rooms = [node_size] * num_nodes
    found = _first_fit(widths, dict.fromkeys(kinds, rooms))
    if found is not None:
        return found
    packing = pack(kinds, num_nodes, node_size)
    assert packing is not None, "a plan that passes the checks fits onto its nodes"
    per_node = [pattern for pattern, nodes in packing for _ in range(nodes)]
    found = _first_fit(widths, {width: [width * pattern[width] for pattern in per_node] for width in kinds})
    assert found is not None, "a packing has a place for every block"
    return found


def _first_fit(widths: Iterable[int], rooms: dict[int, list[int]]) -> list[int] | None:
    """Return the first node for each block whose room for its width is enough, None where there is none.

    `rooms` are devices of each node by width of the block, which may be one list for all widths.
    """
    at, found = dict.fromkeys(rooms, 0), []
    for width in widths:
        node, room = at[width], rooms[width]
        while node < len(room) and room[node] < width:
            node += 1
        if node == len(room):
            return None
        room[node] -= width
        at[width] = node
        found.append(node)
    return found


@cache
def within_node(widths: tuple[int, ...], units: tuple[int, ...]) -> tuple[Block, ...]:
    """Return the devices of a node that each block takes, so that none lies across parts if it can lie in one.

    `units` are the devices of the parts of each level, ascending, the last one the node. The widest block is placed
    first, in the smallest part that is large enough, and of these the fullest: no part is broken into without need.
    """
    free = list(range(units[-1]))
    found: list[Block] = [()] * len(widths)
    for index in sorted(range(len(widths)), key=lambda index: -widths[index]):
        taken = _fullest_part(free, widths[index], units)
        found[index] = tuple(taken)
        free = [device for device in free if device not in taken]
    return tuple(found)


def _fullest_part(free: list[int], width: int, units: tuple[int, ...]) -> list[int]:
    """Return `width` free devices of the fullest of the smallest parts that have as many."""
    for unit in units:
        parts: dict[int, list[int]] = {}
        for device in free:
            parts.setdefault(device // unit, []).append(device)
        roomy = [part for part in parts.values() if len(part) >= width]
        if roomy:
            return min(roomy, key=len)[:width]
    raise AssertionError("a node holds no more blocks than it has room for")
