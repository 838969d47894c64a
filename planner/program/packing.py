"""How tensor groups of unlike width fill nodes without straddling them."""

from __future__ import annotations

from functools import cache


@cache
def patterns(widths: tuple[int, ...], devices_per_node: int) -> tuple[tuple[int, ...], ...]:
    """Return the maximal ways of filling one node: counts of tensor groups per width (ascending).

    Smaller fillings are contained in these, so a constraint "at least this many" needs no others.
    """
    found: list[tuple[int, ...]] = []

    def fill(index: int, free: int, counts: tuple[int, ...]) -> None:
        if index == len(widths):
            if free < min(widths):
                found.append(counts)
            return
        for count in range(free // widths[index] + 1):
            fill(index + 1, free - count * widths[index], (*counts, count))

    fill(0, devices_per_node, ())
    return tuple(found)


def first_fit(counts: dict[int, int], num_nodes: int, devices_per_node: int) -> bool:
    """Tell whether `counts` tensor groups by width fit when the widest are placed first (sufficient, not necessary)."""
    free = {devices_per_node: num_nodes}
    for width in sorted(counts, reverse=True):
        left = counts[width]
        for space in sorted(free):
            if space < width or left == 0:
                continue
            nodes = free[space]
            per_node = space // width
            used = min(nodes, -(-left // per_node))
            placed = min(left, used * per_node)
            left -= placed
            free[space] -= used
            full, part = divmod(placed, per_node)
            for taken, number in ((per_node, full), (part, 1 if part else 0)):
                rest = space - taken * width
                free[rest] = free.get(rest, 0) + number
        if left:
            return False
    return True
