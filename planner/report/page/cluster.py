"""The cluster with its groups, nodes and links, and which part of the plan sits on which device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from planner.domain.cluster import Cluster, DeviceGroup
from planner.placement import Rank
from planner.report.figures import count, gib, plural, rate
from planner.report.layout import LABEL
from planner.report.page.links import links
from planner.report.page.markup import Markup, join, tag
from planner.report.page.patterns import COLOURS, text_colour
from planner.report.page.subject import Subject
from planner.report.problems import spans
from planner.report.ranks import rank_lines
from planner.schedules import schedule_of

UNWRAPPED = 100_000
"""[columns] so wide that no line is broken."""
MOST_TILES = 24
"""Drawings of nodes for each group; alike neighbours are one."""
MOST_RUNS = 24
"""Runs of ranks that are named."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Alike nodes that follow one another."""

    first: int
    number: int
    devices: tuple[int, ...]
    """Stage of each device, all kinds of pipelines numbered on; -1 where it is idle."""


def cluster(about: Subject) -> Markup:
    """Return the groups, which stage each of their devices works on, and what connects them."""
    offsets = _offsets(about)
    used: dict[str, dict[str, list[Rank]]] = {group.name: {} for group in about.cluster.groups}
    for rank in about.placed.ranks:
        used[rank.group].setdefault(rank.node, []).append(rank)
    cards = [_card(group, used[group.name], about.cluster, offsets) for group in about.cluster.groups]
    ranks = " ".join(line[LABEL:].strip() for line in rank_lines(about.placed, UNWRAPPED, MOST_RUNS))
    return join(
        links(about.cluster),
        tag("div", *cards, class_="groups"),
        tag("p", tag("b", "Ranks: "), ranks),
        tag(
            "p",
            f"Each square is a device, its number the stage that it works on; empty ones are idle.{_facing(about)}",
            class_="note",
        ),
    )


def _facing(about: Subject) -> str:
    """Return which layers a device holds besides those of its stage, where a schedule runs from both ends."""
    if schedule_of(about.plan).directions == 1:
        return ""
    last = about.plan.num_stages - 1
    return (
        f" {about.plan.schedule} runs from both ends: devices of stage 0 hold the layers of stage {last} as well,"
        f" those of stage {last} the layers of stage 0, and so on inwards."
    )


def _offsets(about: Subject) -> list[int]:
    """Return the number of the first stage of each kind of pipeline."""
    found, start = [], 0
    for pipeline in about.plan.pipelines:
        found.append(start)
        start += pipeline.num_stages
    return found


def _card(group: DeviceGroup, nodes: dict[str, list[Rank]], whole: Cluster, offsets: list[int]) -> Markup:
    """Return a group: what it is, and its nodes."""
    tiles = list(_tiles(group, nodes, whole, offsets))
    shown = tiles[:MOST_TILES]
    hidden = sum(tile.number for tile in tiles[MOST_TILES:])
    network = group.inter_node
    return tag(
        "article",
        tag("h3", group.name),
        tag(
            "p",
            f"{plural(group.num_nodes, 'node')} of {group.devices_per_node} {group.device.name}, "
            f"{gib(group.device.memory)} GiB each",
        ),
        tag("div", *(_tile(tile, group) for tile in shown), class_="tiles-of-nodes"),
        tag("p", f"... and {plural(hidden, 'node')} more.") if hidden else "",
        tag(
            "p",
            tag("span", class_="wire", aria_hidden="true"),
            f"inside a node: {group.intra_node.name}, {rate(group.intra_node.bandwidth)} a device",
            *(f"; parts of {level.num_devices}: {rate(level.link.bandwidth)}" for level in group.intra_node.levels),
            class_="link",
        ),
        tag(
            "p",
            tag("span", class_="wire net", aria_hidden="true"),
            f"between nodes: {network.name}, {rate(network.bandwidth)} a node",
            *(
                f"; beyond {plural(tier.num_nodes, 'node')} ({tier.name}): {rate(tier.bandwidth)}"
                for tier in network.tiers
            ),
            class_="link",
        )
        if group.num_nodes > 1 or len(whole.groups) > 1
        else "",
    )


def _tiles(group: DeviceGroup, nodes: dict[str, list[Rank]], whole: Cluster, offsets: list[int]) -> Iterator[Tile]:
    """Yield the nodes of a group in their order, idle ones last."""
    shared = [other for other in whole.groups if group.nodes and other.nodes == group.nodes]
    before = sum(other.devices_per_node for other in shared[: shared.index(group)]) if shared else 0
    found: list[tuple[int, tuple[int, ...]]] = []
    for name, ranks in nodes.items():
        stages = [-1] * group.devices_per_node
        for rank in ranks:
            stages[rank.device_index - before] = offsets[rank.pipeline] + rank.stage
        found.append((int(name.rsplit("-", 1)[1]), tuple(stages)))
    idle = sorted(set(range(group.num_nodes)) - {number for number, _ in found})
    found += [(number, (-1,) * group.devices_per_node) for number in idle]
    found.sort()
    for devices, alike in groupby(found, key=lambda node: node[1]):
        numbers = [number for number, _ in alike]
        yield Tile(numbers[0], len(numbers), devices)


def _tile(tile: Tile, group: DeviceGroup) -> Markup:
    """Return nodes as a frame with a square for each device."""
    squares = [_square(stage) for stage in tile.devices]
    numbers = f"{tile.first}-{tile.first + tile.number - 1}" if tile.number > 1 else str(tile.first)
    working = [stage for stage in dict.fromkeys(tile.devices) if stage >= 0]
    said = f"stages {spans(sorted(working))}" if len(working) > 1 else f"stage {working[0]}" if working else "idle"
    noun = "nodes" if tile.number > 1 else "node"
    return tag(
        "figure",
        tag("div", *squares, class_="squares", role="img", aria_label=f"{noun} {numbers} of {group.name}: {said}"),
        tag("figcaption", f"{noun} {numbers}", tag("b", f" x{count(tile.number)}") if tile.number > 1 else ""),
        class_="node",
    )


def _square(stage: int) -> Markup:
    if stage < 0:
        return tag("i", class_="idle")
    colour = COLOURS[stage % len(COLOURS)]
    return tag("i", str(stage), style=f"background:{colour};color:{text_colour(colour)}", title=f"stage {stage}")
