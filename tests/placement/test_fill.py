"""Blocks onto nodes in their order, and onto devices so that parts of a node stay whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from planner.checks.packing import is_packable
from planner.domain.cluster import Level
from planner.placement.fill import devices_of, nodes_of, within_node


@pytest.mark.parametrize(
    ("widths", "num_nodes", "nodes"),
    [
        ([2, 2, 2, 2], 2, [0, 0, 1, 1]),
        ([4, 1, 4, 1], 4, [0, 1, 2, 1]),
        ([1, 4, 3, 2, 2], 3, [0, 1, 0, 2, 2]),
    ],
)
def test_blocks_go_to_the_first_node_that_has_room(widths: list[int], num_nodes: int, nodes: list[int]) -> None:
    """Nodes of four: side by side what follows one another; what finds no room goes on, and leaves none unused."""
    assert nodes_of(widths, num_nodes, 4) == nodes


def test_a_packing_helps_where_their_order_needs_too_many_nodes() -> None:
    """2, 2, 3, 3 on two nodes of five: in this order 2 and 2 share a node and 3 and 3 need two more."""
    assert nodes_of([2, 2, 3, 3], 2, 5) == [0, 1, 0, 1]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 8), max_size=14), st.integers(1, 6), st.integers(1, 9))
def test_what_the_check_accepts_is_placed(widths: list[int], num_nodes: int, node_size: int) -> None:
    """Whatever fits in some order is placed, on nodes that are there and none too full."""
    blocks = {width: widths.count(width) for width in widths}
    if not is_packable(blocks, num_nodes, node_size):
        return
    nodes = nodes_of(widths, num_nodes, node_size)
    assert all(0 <= node < num_nodes for node in nodes)
    held = [sum(width for width, at in zip(widths, nodes, strict=True) if at == node) for node in range(num_nodes)]
    assert max(held) <= node_size


@pytest.mark.parametrize(
    ("widths", "units", "devices"),
    [
        ((1, 2, 1), (2, 4), ((2,), (0, 1), (3,))),
        ((1, 1, 1, 1), (2, 4), ((0,), (1,), (2,), (3,))),
        ((1, 3, 2, 2), (2, 4, 8), ((3,), (0, 1, 2), (4, 5), (6, 7))),
        ((3, 3, 2), (4, 8), ((0, 1, 2), (4, 5, 6), (3, 7))),
    ],
)
def test_blocks_keep_to_parts_of_a_node(
    widths: tuple[int, ...], units: tuple[int, ...], devices: tuple[tuple[int, ...], ...]
) -> None:
    """Pairs, and islands of four: each in one if it fits; the last 2 of 3, 3, 2 cannot."""
    assert within_node(widths, units) == devices


@given(st.lists(st.sampled_from((1, 2, 4, 8)), max_size=16))
def test_no_part_is_torn_where_widths_divide_one_another(widths: list[int]) -> None:
    """On 16 devices in pairs, islands of four and halves of eight."""
    while sum(widths) > 16:
        widths.pop()
    for width, devices in zip(widths, within_node(tuple(widths), (2, 4, 8, 16)), strict=True):
        assert len({device // width for device in devices}) == 1


def test_wide_blocks_take_whole_nodes() -> None:
    """Eight devices are two nodes of four; a narrow block before them leaves its node alone."""
    group = builders.group(nodes=3, per_node=4)
    assert devices_of((1, 8), group) == ((0,), (4, 5, 6, 7, 8, 9, 10, 11))


def test_parts_are_those_of_the_link() -> None:
    """One device, then a tensor group of two: the group has a pair of its own, the device the other one."""
    group = builders.group(nodes=1, per_node=4)
    pairs = replace(group.intra_node, levels=(Level(num_devices=2, link=group.intra_node),))
    assert devices_of((1, 2), replace(group, intra_node=pairs)) == ((2,), (0, 1))
