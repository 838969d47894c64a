"""Whether blocks of devices that must not be torn apart fit onto identical nodes (bin packing of few sizes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import mul

_MAX_STEPS = 20_000
"""Of the search for a packing; real clusters need none, because their sizes divide one another."""


Pattern = tuple[int, ...]
"""Blocks of each size on one node, the largest size first."""


def is_packable(blocks: Mapping[int, int], num_nodes: int, node_size: int) -> bool:
    """Return whether `blocks` (size -> how many; both in devices) fit onto `num_nodes` nodes of `node_size` devices."""
    return pack(blocks, num_nodes, node_size) is not None


def pack(blocks: Mapping[int, int], num_nodes: int, node_size: int) -> list[tuple[dict[int, int], int]] | None:
    """Return nodes that have room for `blocks`, as (size -> blocks of a node, number of such nodes), None if none do.

    Filling the fullest node first, largest blocks first, is optimal where each size divides the next larger
    (Coffman, Garey, Johnson 1987, "Bin packing with divisible item sizes"). Other sizes are searched, unless a bound
    says no (Martello, Toth 1990, "Lower bounds and reduction procedures for the bin packing problem", L2).
    """
    sizes = [size for size in sorted(blocks, reverse=True) if blocks[size] > 0]
    needed = tuple(blocks[size] for size in sizes)
    if any(size > node_size for size in sizes):
        return None
    found: list[tuple[Pattern, int]] | None = _greedy(sizes, needed, node_size)
    if sum(nodes for _, nodes in found or ()) > num_nodes:
        divisible = all(larger % smaller == 0 for larger, smaller in pairwise(sizes))
        found = None if divisible else _Search(sizes, node_size).cover(needed, num_nodes)
    return found if found is None else [(dict(zip(sizes, pattern, strict=True)), nodes) for pattern, nodes in found]


def _greedy(sizes: Sequence[int], needed: Sequence[int], node_size: int) -> list[tuple[Pattern, int]]:
    """Return the nodes that are used when the fullest node that has room takes the next block."""
    nodes: dict[Pattern, int] = {}
    for index, size in enumerate(sizes):
        left, empty = needed[index], (0,) * len(sizes)
        room = {pattern: node_size - sum(map(mul, pattern, sizes)) for pattern in (*nodes, empty)}
        nodes[empty] = -(-left // (node_size // size))
        for pattern in sorted(room, key=room.__getitem__):
            left = _fill(nodes, pattern, index, room[pattern] // size, left)
        nodes.pop(empty, None)
    return list(nodes.items())


def _fill(nodes: dict[Pattern, int], pattern: Pattern, index: int, each: int, blocks: int) -> int:
    """Put up to `blocks` blocks, `each` a node, onto the nodes with `pattern` and return how many are left."""
    full = min(nodes[pattern], blocks // each) if each else 0
    rest = blocks - full * each if each and full < nodes[pattern] else 0
    for count, put in ((full, each), (1, rest)):
        if count and put:
            grown = (*pattern[:index], put, *pattern[index + 1 :])
            nodes[grown] = nodes.get(grown, 0) + count
            nodes[pattern] -= count
    return blocks - full * each - rest


class _Search:
    """Depth first over how many nodes carry each maximal pattern of blocks."""

    def __init__(self, sizes: list[int], node_size: int) -> None:
        self.sizes = sizes
        self.node_size = node_size
        self.patterns = self._maximal(0, node_size)
        self.steps = 0

    def _maximal(self, index: int, room: int) -> list[Pattern]:
        """Return the patterns of the sizes from `index` on to which no further block can be added, fullest first."""
        size = self.sizes[index]
        if index == len(self.sizes) - 1:
            return [(room // size,)]
        return [
            (count, *rest)
            for count in range(room // size, -1, -1)
            for rest in self._maximal(index + 1, room - count * size)
            if room - count * size - sum(n * s for n, s in zip(rest, self.sizes[index + 1 :], strict=True)) < size
        ]

    def cover(self, needed: Pattern, nodes: int, first: int = 0) -> list[tuple[Pattern, int]] | None:
        """Return how many of `nodes` nodes have each pattern from `first` on, so that `needed` is covered, or None."""
        self.steps += 1
        if not any(needed):
            return []
        if first == len(self.patterns) or self.bound(needed) > nodes or self.steps > _MAX_STEPS:
            return None
        pattern = self.patterns[first]
        most = max((-(-need // count) for need, count in zip(needed, pattern, strict=True) if count), default=0)
        for times in range(min(nodes, most), -1, -1):
            rest = self.cover(self._less(needed, pattern, times), nodes - times, first + 1)
            if rest is not None:
                return [(pattern, times), *rest]
        return None

    @staticmethod
    def _less(needed: Pattern, pattern: Pattern, times: int) -> Pattern:
        return tuple(max(0, need - times * count) for need, count in zip(needed, pattern, strict=True))

    def bound(self, needed: Pattern) -> int:
        """Return a number of nodes below which `needed` cannot fit."""
        items = list(zip(self.sizes, needed, strict=True))
        return max(self._bound(items, small) for small in range(self.node_size // 2 + 1))

    def _bound(self, items: list[tuple[int, int]], small: int) -> int:
        half, whole = self.node_size / 2, self.node_size
        alone = sum(count for size, count in items if size > whole - small)
        large = [(size, count) for size, count in items if half < size <= whole - small]
        num_large = sum(count for _, count in large)
        room = num_large * whole - sum(size * count for size, count in large)
        rest = sum(size * count for size, count in items if small <= size <= half)
        return alone + num_large + max(0, -(-(rest - room) // whole))
