"""Text in columns: tables, labelled lines and bars, no wider than the page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

WIDTH = 100
"""[columns] of a page; a narrower terminal gets a narrower page."""
LABEL = 9
"""[columns] that the label of a line takes."""
FULL, EMPTY = "█", "░"
"""What bars are made of."""
_JOINT = "\u00a0"
"""A blank at which no line is broken."""
SEPARATOR = "  "
"""Between two columns of a table."""


def bar(share: float, cells: int) -> str:
    """Return a bar of `cells` cells of which `share` are filled, neither none nor all unless it is exact."""
    filled = round(max(0.0, min(1.0, share)) * cells)
    if share > 0:
        filled = max(1, filled)
    if 0 < share < 1:
        filled = min(cells - 1, filled) if cells > 1 else filled
    return FULL * filled + EMPTY * (cells - filled)


def labelled(label: str, text: str, width: int = WIDTH, *, indent: int = LABEL) -> list[str]:
    """Return `text` behind `label`, wrapped and hanging; it is not broken where `joined` made one word of several."""
    lines = textwrap.wrap(
        text,
        width=max(40, width),
        initial_indent=label.ljust(indent),
        subsequent_indent=" " * indent,
        break_long_words=True,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINT, " ") for line in lines]


def joined(text: str) -> str:
    """Return `text` so that no line is broken inside it."""
    return text.replace(" ", _JOINT)


def bullet(text: str, width: int = WIDTH) -> list[str]:
    """Return `text` as an item of a list."""
    return labelled("  -", text, width, indent=4)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "", indent: int = 0) -> list[str]:
    """Return the lines of a table.

    Args:
        head: titles of the columns; columns that have nothing in any row are left out.
        rows: cells, as many a row as there are titles.
        right: the titles of columns that are aligned to the right, separated by commas.
        indent: [columns] before the first.
    """
    used = [column for column in range(len(head)) if any(row[column] for row in rows)]
    flush = set(right.split(","))
    widths = {column: max(len(head[column]), *(len(row[column]) for row in rows)) for column in used}

    def line(cells: Sequence[str]) -> str:
        padded = [
            cells[column].rjust(widths[column]) if head[column] in flush else cells[column].ljust(widths[column])
            for column in used
        ]
        return (" " * indent + SEPARATOR.join(padded)).rstrip()

    return [line(head), *(line(row) for row in rows)]


def wrapped_rows(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, indent: int = 0, last: int = 1
) -> list[list[str]]:
    """Return `rows` with their `last` cells wrapped over further rows, so that the table is no wider than `width`.

    Those cells share the room that the others leave; one that needs less than its share leaves it to those behind.
    """
    fixed = len(head) - last
    before = table(head[:fixed], [row[:fixed] for row in rows], indent=indent)
    room = width - max(map(len, before), default=0)
    rooms: list[int] = []
    for column in range(fixed, len(head)):
        share = max(16, room // (len(head) - column) - len(SEPARATOR))
        rooms.append(min(share, max(len(row[column]) for row in [head, *rows])))
        room -= rooms[-1] + len(SEPARATOR)
    wrapped: list[list[str]] = []
    for row in rows:
        cells = [_wrapped(cell, size) for cell, size in zip(row[fixed:], rooms, strict=True)]
        lines = list(zip_longest(*cells, fillvalue=""))
        wrapped += [[*(row[:fixed] if not number else [""] * fixed), *line] for number, line in enumerate(lines)]
    return wrapped


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell, one at least."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    return [line.replace(_JOINT, " ") for line in lines] or [""]


def cut(text: str, width: int) -> str:
    """Return `text`, its end replaced by an ellipsis where it is longer than `width`."""
    return text if len(text) <= width else text[: max(1, width - 3)].rstrip() + "..."


def bars(rows: Sequence[tuple[str, float, str]], *, cells: int = 30, indent: int = 0) -> list[str]:
    """Return one bar for each (title, size, figures), as long as its share of the largest."""
    if not rows:
        return []
    largest = max(size for _, size, _ in rows) or 1.0
    title = max(len(name) for name, _, _ in rows)
    figures = max(len(text) for _, _, text in rows)
    return [
        f"{' ' * indent}{name.ljust(title)}{SEPARATOR}{text.rjust(figures)}{SEPARATOR}"
        f"{FULL * max(1, round(cells * size / largest))}"
        for name, size, text in rows
    ]
