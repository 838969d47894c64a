"""The cluster with its groups, nodes and links, and which part of the plan sits on which device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby

from planner.domain.cluster import Cluster, DeviceGroup, GroupLink
from planner.placement import Rank
from planner.report.figures import count, gib, percent, plural, rate
from planner.report.layout import LABEL
from planner.report.page.markup import Markup, join, tag
from planner.report.page.patterns import COLOURS, text_colour
from planner.report.page.subject import Subject
from planner.report.problems import spans
from planner.report.ranks import rank_lines

UNWRAPPED = 100_000
"""[columns] so wide that no line is broken."""
MOST_TILES = 24
"""Drawings of nodes for each group; alike neighbours are one."""
MOST_GROUPS = 5
"""Groups that a map of links has room for."""
BOX, BETWEEN = 126, 292
"""[units] of a group in the map of links, and from one to the next."""


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
    ranks = " ".join(line[LABEL:].strip() for line in rank_lines(about.placed, UNWRAPPED))
    return join(
        _map(about.cluster),
        tag("div", *cards, class_="groups"),
        tag("p", tag("b", "Ranks: "), ranks, "."),
        tag("p", "Each square is a device, its number the stage that it works on; empty ones are idle.", class_="note"),
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
        style=f"flex:{min(4, len(shown))} 1 {240 + 140 * min(2, len(shown) - 1)}px",
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


def _map(whole: Cluster) -> Markup:
    """Return a drawing of what connects the groups; one group is connected by its network alone."""
    groups = whole.groups
    if not 1 < len(groups) <= MOST_GROUPS:
        return _list(whole)
    pairs = sorted(combinations(range(len(groups)), 2), key=lambda pair: pair[1] - pair[0])
    centres = [BOX / 2 + 1 + index * BETWEEN for index in range(len(groups))]
    arcs = [_arc(whole, centres, pairs, level) for level in range(len(pairs))]
    width, height = BOX + 2 + BETWEEN * (len(groups) - 1), 64 + 30 * len(pairs)
    boxes = [
        tag(
            "g",
            tag("rect", x=centre - BOX / 2, y=8, width=BOX, height=40, rx=8, class_="box"),
            tag("text", _short(group.name), x=centre, y=26, class_="title"),
            tag("text", f"{count(group.num_devices)} devices", x=centre, y=41),
        )
        for group, centre in zip(groups, centres, strict=True)
    ]
    said = "; ".join(_link_said(whole, *pair) for pair in pairs)
    return tag(
        "div",
        tag(
            "svg",
            *arcs,
            *boxes,
            viewBox=f"0 0 {width} {height}",
            style=f"min-width:{0.75 * width:.0f}px;max-width:{1.2 * width:.0f}px",
            role="img",
            aria_label=f"Links between the groups: {said}",
        ),
        class_="map scroll",
        tabindex="0",
        role="region",
        aria_label="Links between the groups",
    )


def _arc(whole: Cluster, centres: list[float], pairs: list[tuple[int, int]], level: int) -> Markup:
    """Return a line below the groups that it connects, with what it is; shorter ones lie inside longer ones."""
    first, second = pairs[level]
    low = 74 + 30 * level
    inside_first = sum(pair[0] == first for pair in pairs[:level])
    inside_second = sum(pair[1] == second for pair in pairs[:level])
    left = centres[first] + BOX / 2 - 12 - 14 * inside_first
    right = centres[second] - BOX / 2 + 12 + 14 * inside_second
    link = whole.link(whole.groups[first].name, whole.groups[second].name)
    return tag(
        "g",
        tag("path", d=f"M{left:.1f} 48V{low}H{right:.1f}V48", class_="arc" if link else "arc plain"),
        tag("text", _link_text(whole, link, first, second), x=f"{(left + right) / 2:.1f}", y=low - 6, class_="on"),
    )


def _link_text(whole: Cluster, link: GroupLink | None, first: int, second: int) -> str:
    """Return what connects two groups: a link of its own, or the slower of their networks."""
    if link is None:
        slower = min((whole.groups[at].inter_node for at in (first, second)), key=lambda network: network.bandwidth)
        return f"network, {rate(slower.bandwidth)} a node"
    each = "device" if link.transport == "node" else "node"
    share = f" x {percent(link.efficiency)}" if link.efficiency < 1 else ""
    return f"{link.transport}, {rate(link.bandwidth)}{share} a {each}"


def _link_said(whole: Cluster, first: int, second: int) -> str:
    names = (whole.groups[first].name, whole.groups[second].name)
    return f"{names[0]} and {names[1]}: {_link_text(whole, whole.link(*names), first, second)}"


def _list(whole: Cluster) -> Markup:
    """Return the links of their own that groups have, where there are too many groups to draw."""
    names = [group.name for group in whole.groups]
    items = [tag("li", _link_said(whole, names.index(link.first), names.index(link.second))) for link in whole.links]
    return tag("ul", *items) if items else Markup("")


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:14]}..."
