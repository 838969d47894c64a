"""What connects the groups of a cluster: drawn where they are few, a table of all pairs where they are more."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from planner.domain.cluster import Cluster
from planner.report.figures import count, percent, rate
from planner.report.page.markup import Markup, join, tag
from planner.report.page.markup import percent as length

MOST_DRAWN = 3
"""Groups whose lines do not cross each other's words."""
MOST_PAIRED = 12
"""Groups that a table of pairs has columns for."""
SMALL, CAPITAL = 8.6, 11.0
"""[units] that a letter of a name may take."""
INSET, GAP, LEVEL = 12, 126, 46
"""[units] from the side of a box to a line, between boxes, and from line to line."""
LONGEST = 18
"""[characters] of a group's name in the drawing."""
LEAST_SCALE, MOST_SCALE = 0.86, 1.15
"""[px] that a unit may take."""


class Joint(NamedTuple):
    """What connects two groups, or the nodes of one."""

    speed: float
    """[bytes/s]"""
    text: str
    """How fast it is."""
    kind: str
    """What it is, and how much of that is reached."""
    is_own: bool
    """Whether it is a link of its own, and not the network of the slower one."""


def links(whole: Cluster) -> Markup:
    """Return what connects the groups; nothing for a single one, which is connected by its network alone."""
    if len(whole.groups) < 2:
        return Markup("")
    if len(whole.groups) <= MOST_DRAWN:
        return _drawing(whole)
    return _pairs(whole) if len(whole.groups) <= MOST_PAIRED else _list(whole)


def _joint(whole: Cluster, first: int, second: int) -> Joint:
    """Return what connects two groups: a link of its own, or the slower of their networks."""
    groups = whole.groups[first], whole.groups[second]
    link = whole.link(groups[0].name, groups[1].name) if first != second else None
    if link is None:
        slower = min((group.inter_node for group in groups), key=lambda network: network.bandwidth)
        return Joint(slower.bandwidth, f"{rate(slower.bandwidth)} a node", slower.name, is_own=False)
    each = "device" if link.transport == "node" else "node"
    transport = "inside the node" if link.transport == "node" else link.transport
    share = f", {percent(link.efficiency)} of it" if link.efficiency < 1 else ""
    return Joint(link.bandwidth, f"{rate(link.bandwidth)} a {each}", f"{transport}{share}", is_own=True)


def _said(whole: Cluster, first: int, second: int) -> str:
    joint = _joint(whole, first, second)
    return f"{whole.groups[first].name} and {whole.groups[second].name}: {joint.text}, {joint.kind}"


def _drawing(whole: Cluster) -> Markup:
    """Return boxes in a row, with a line below for each two of them."""
    groups = whole.groups
    widths = [max(104.0, _width(_short(group.name)) + 20) for group in groups]
    lefts = [1 + sum(widths[:index]) + GAP * index for index in range(len(groups))]
    edges = [(left, left + size) for left, size in zip(lefts, widths, strict=True)]
    width, height = edges[-1][1] + 1, 94 + LEVEL * (len(groups) - 2)
    pairs = list(combinations(range(len(groups)), 2))
    boxes = [
        tag(
            "g",
            tag("rect", x=f"{left:.1f}", y=2, width=f"{right - left:.1f}", height=42, rx=8, class_="box"),
            tag("text", _short(group.name), x=f"{(left + right) / 2:.1f}", y=20, class_="title"),
            tag("text", f"{count(group.num_devices)} devices", x=f"{(left + right) / 2:.1f}", y=36),
        )
        for group, (left, right) in zip(groups, edges, strict=True)
    ]
    picture = tag(
        "svg",
        *(_line(whole, edges, *pair) for pair in pairs),
        *boxes,
        viewBox=f"0 0 {width:.0f} {height}",
        style=f"min-width:{LEAST_SCALE * width:.0f}px;max-width:{MOST_SCALE * width:.0f}px",
        role="img",
        aria_label=f"Links between the groups: {'; '.join(_said(whole, *pair) for pair in pairs)}",
    )
    return _scrolled(picture, "map scroll")


def _line(whole: Cluster, edges: list[tuple[float, float]], first: int, second: int) -> Markup:
    """Return a line below two groups with what it is; longer ones lie below shorter ones, and outside them."""
    joint, level = _joint(whole, first, second), second - first - 1
    low = 72 + LEVEL * level
    left, right = edges[first][1] - INSET - 14 * level, edges[second][0] + INSET + 14 * level
    middle = f"{(left + right) / 2:.1f}"
    return tag(
        "g",
        tag("path", d=f"M{left:.1f} 44V{low}H{right:.1f}V44", class_="arc" if joint.is_own else "arc plain"),
        tag("text", joint.text, x=middle, y=low - 6),
        tag("text", joint.kind, x=middle, y=low + 15, class_="on"),
    )


def _pairs(whole: Cluster) -> Markup:
    """Return a table with a cell for every two groups, and for the network of each."""
    names = [group.name for group in whole.groups]
    places = range(len(names))
    fastest = max(_joint(whole, one, other).speed for one in places for other in places)
    head = tag("tr", tag("td"), *(tag("th", name, scope="col") for name in names))
    rows = [
        tag("tr", tag("th", names[row], scope="row"), *(_cell(whole, row, column, fastest) for column in places))
        for row in places
    ]
    caption = "What connects the groups; on the diagonal the nodes of each. Dotted: no link of its own, the networks"
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *rows), class_="pairs")
    return _scrolled(made, "scroll")


def _cell(whole: Cluster, row: int, column: int, fastest: float) -> Markup:
    joint = _joint(whole, row, column)
    bar = tag("span", style=f"width:{length(joint.speed / fastest)}", class_="wire" if joint.is_own else "wire net")
    look = "self" if row == column else None
    return tag("td", joint.text, tag("small", joint.kind), tag("span", bar, aria_hidden="true"), class_=look)


def _list(whole: Cluster) -> Markup:
    """Return the links of their own that groups have."""
    names = [group.name for group in whole.groups]
    items = [tag("li", _said(whole, names.index(link.first), names.index(link.second))) for link in whole.links]
    note = tag("p", "Groups without a link of their own reach each other by their networks.")
    return join(tag("ul", *items) if items else "", note)


def _scrolled(made: Markup, look: str) -> Markup:
    return tag("div", made, class_=look, tabindex="0", role="region", aria_label="Links between the groups")


def _width(name: str) -> float:
    """Return the units that a name may take, a wide fallback font allowed for."""
    return sum(CAPITAL if letter.isupper() else SMALL for letter in name)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
