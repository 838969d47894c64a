"""Whether blocks of devices that must not be torn apart fit onto identical nodes (bin packing of few sizes)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

_MAX_STEPS = 20_000
"""Of the search for a packing; real clusters need none, because their sizes divide one another."""


def is_packable(blocks: Mapping[int, int], num_nodes: int, node_size: int) -> bool:
    """Return whether `blocks` (size -> how many; both in devices) fit onto `num_nodes` nodes of `node_size` devices.

    Filling the fullest node first, largest blocks first, is optimal where each size divides the next larger
    (Coffman, Garey, Johnson 1987, "Bin packing with divisible item sizes"). Other sizes are searched, unless a bound
    says no (Martello, Toth 1990, "Lower bounds and reduction procedures for the bin packing problem", L2).
    """
    needed = {size: blocks[size] for size in sorted(blocks, reverse=True) if blocks[size] > 0}
    if any(size > node_size for size in needed):
        return False
    if _greedy(needed, node_size) <= num_nodes:
        return True
    sizes = list(needed)
    divisible = all(larger % smaller == 0 for larger, smaller in pairwise(sizes))
    return not divisible and _Search(sizes, node_size).fits(tuple(needed.values()), num_nodes)


def _greedy(blocks: Mapping[int, int], node_size: int) -> int:
    """Return the number of nodes that are used when the fullest node that has room takes the next block."""
    nodes = 0
    with_room: dict[int, int] = {}
    for size, how_many in blocks.items():
        left = how_many
        for room in sorted(room for room in with_room if room >= size):
            taken = min(with_room[room], -(-left // (room // size)))
            left = _fill(with_room, room, taken, size, left)
        fresh = -(-left // (node_size // size))
        nodes += fresh
        with_room[node_size] = with_room.get(node_size, 0) + fresh
        _fill(with_room, node_size, fresh, size, left)
        with_room.pop(node_size, None)
    return nodes


def _fill(with_room: dict[int, int], room: int, nodes: int, size: int, blocks: int) -> int:
    """Put up to `blocks` blocks onto `nodes` nodes with `room` and return how many are left."""
    each = room // size
    full = min(nodes, blocks // each)
    rest = min(blocks - full * each, each) if nodes > full else 0
    for count, left in ((full, room - each * size), (1 if rest else 0, room - rest * size)):
        if count:
            with_room[room] -= count
            with_room[left] = with_room.get(left, 0) + count
    return blocks - full * each - rest


class _Search:
    """Depth first over how many nodes carry each maximal pattern of blocks."""

    def __init__(self, sizes: list[int], node_size: int) -> None:
        self.sizes = sizes
        self.node_size = node_size
        self.patterns = self._maximal(0, node_size)
        self.steps = 0

    def _maximal(self, index: int, room: int) -> list[tuple[int, ...]]:
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

    def fits(self, needed: tuple[int, ...], nodes: int, first: int = 0) -> bool:
        """Return whether the patterns from `first` on cover `needed` on `nodes` nodes."""
        self.steps += 1
        if not any(needed):
            return True
        if first == len(self.patterns) or self.bound(needed) > nodes or self.steps > _MAX_STEPS:
            return False
        pattern = self.patterns[first]
        most = max((-(-need // count) for need, count in zip(needed, pattern, strict=True) if count), default=0)
        return any(
            self.fits(self._less(needed, pattern, times), nodes - times, first + 1)
            for times in range(min(nodes, most), -1, -1)
        )

    @staticmethod
    def _less(needed: tuple[int, ...], pattern: tuple[int, ...], times: int) -> tuple[int, ...]:
        return tuple(max(0, need - times * count) for need, count in zip(needed, pattern, strict=True))

    def bound(self, needed: tuple[int, ...]) -> int:
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
