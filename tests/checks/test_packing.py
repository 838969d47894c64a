"""Packing of tensor groups onto nodes equals what exhaustive search finds."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from planner.checks.packing import is_packable, pack


@cache
def fits(items: tuple[int, ...], rooms: tuple[int, ...]) -> bool:
    """Return whether the items (largest first) fit into the rooms, by trying every room for each."""
    if not items:
        return True
    return any(
        fits(items[1:], tuple(sorted((*rooms[:index], room - items[0], *rooms[index + 1 :]))))
        for index, room in enumerate(rooms)
        if room >= items[0]
    )


def holds(
    packing: list[tuple[dict[int, int], int]] | None, blocks: dict[int, int], num_nodes: int, node_size: int
) -> bool:
    """Return whether a packing has room for the blocks, on no more nodes than there are and none too full."""
    if packing is None:
        return False
    full = any(sum(size * count for size, count in node.items()) > node_size for node, _ in packing)
    room = {size: sum(node.get(size, 0) * nodes for node, nodes in packing) for size in blocks}
    assert not full
    assert sum(nodes for _, nodes in packing) <= num_nodes
    return all(room[size] >= count for size, count in blocks.items())


@pytest.mark.parametrize("sizes", [(8, 4, 2, 1), (3, 2, 1), (4, 3, 2), (6, 4, 3), (5, 3, 2), (6, 2, 1)])
@pytest.mark.parametrize("node_size", [4, 6, 8, 9])
def test_equals_exhaustive_search(sizes: tuple[int, ...], node_size: int) -> None:
    """Up to three nodes and three blocks of each size."""
    for num_nodes in (1, 2, 3):
        for counts in product(range(4), repeat=len(sizes)):
            items = tuple(size for size, count in zip(sizes, counts, strict=True) for _ in range(count))
            expected = fits(items, (node_size,) * num_nodes)
            blocks = dict(zip(sizes, counts, strict=True))
            assert is_packable(blocks, num_nodes, node_size) is expected, items
            assert holds(pack(blocks, num_nodes, node_size), blocks, num_nodes, node_size) is expected, items


@pytest.mark.parametrize(
    ("blocks", "num_nodes", "packable"),
    [
        ({8: 6_000, 4: 8_000, 2: 4_000, 1: 8_000}, 12_000, True),
        ({8: 6_000, 4: 8_000, 2: 4_000, 1: 8_001}, 12_000, False),
        ({3: 4_000, 2: 2_000}, 2_000, True),
        ({3: 4_000, 2: 2_001}, 2_000, False),
        ({5: 1_000, 3: 1_000}, 1_000, True),
        ({6: 1_000, 4: 1_000, 2: 1_000}, 1_500, True),
        ({6: 1_000, 4: 1_001, 2: 1_000}, 1_500, False),
        ({3: 3_000}, 1_499, False),
        ({}, 0, True),
        ({0: 0}, 1, True),
    ],
)
def test_large_clusters(blocks: dict[int, int], num_nodes: int, packable: bool) -> None:
    """Thousands of nodes of eight devices are answered as surely as three."""
    assert is_packable(blocks, num_nodes, 8) is packable
    assert holds(pack(blocks, num_nodes, 8), blocks, num_nodes, 8) is packable
