"""Text in columns: tables, labelled lines and bars, no wider than the page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

WIDTH = 100
"""[columns] of a page; a narrower terminal gets a narrower page."""
NARROW = 40
"""[columns] of the narrowest page."""
LABEL = 9
"""[columns] that the label of a line takes."""
FULL, EMPTY = "█", "░"
"""What bars are made of."""
_JOINT = "\u00a0"
"""A blank at which no line is broken."""
SEPARATOR = "  "
"""Between two columns of a table."""
LEAST_TEXT = 16
"""[columns] of a text beside the other columns of a table."""
BAR = 30
"""[columns] of the longest bar."""


def bar(share: float, cells: int) -> str:
    """Return a bar of `cells` cells of which `share` are filled, neither none nor all unless it is exact."""
    filled = round(max(0.0, min(1.0, share)) * cells)
    if share > 0:
        filled = max(1, filled)
    if 0 < share < 1:
        filled = min(cells - 1, filled) if cells > 1 else filled
    return FULL * filled + EMPTY * (cells - filled)


def labelled(label: str, text: str, width: int = WIDTH, *, indent: int = LABEL) -> list[str]:
    """Return `text` behind `label`, wrapped and hanging; it is not broken where `joined` made one word of several.

    What `joined` made longer than a line is several words again.
    """
    room = max(NARROW, width) - indent
    words = (word if len(word) <= room else word.replace(_JOINT, " ") for word in text.split(" "))
    lines = textwrap.wrap(
        " ".join(words),
        width=max(NARROW, width),
        initial_indent=label.ljust(indent),
        subsequent_indent=" " * indent,
        break_long_words=True,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINT, " ") for line in lines]


def heading(text: str, width: int = WIDTH) -> list[str]:
    """Return the line above something, wrapped."""
    return textwrap.wrap(text, max(NARROW, width), subsequent_indent=SEPARATOR, break_on_hyphens=False)


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
        share = max(LEAST_TEXT, room // (len(head) - column) - len(SEPARATOR))
        rooms.append(min(share, max(len(row[column]) for row in [head, *rows])))
        room -= rooms[-1] + len(SEPARATOR)
    wrapped: list[list[str]] = []
    for row in rows:
        cells = [_wrapped(cell, size) for cell, size in zip(row[fixed:], rooms, strict=True)]
        lines = list(zip_longest(*cells, fillvalue=""))
        wrapped += [[*(row[:fixed] if not number else [""] * fixed), *line] for number, line in enumerate(lines)]
    return wrapped


def fitted(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: str = "",
    indent: int = 0,
    spare: Sequence[str] = (),
) -> list[str]:
    """Return the lines of a table no wider than `width`.

    Without columns of `spare`, the first of them first, as far as need be. Where that does not do, in several tables
    below one another that begin with the same column; where that is too wide itself, row by row in words. The other
    arguments are those of `table`.
    """
    for number in range(len(spare) + 1):
        kept = [column for column, title in enumerate(head) if title not in spare[:number]]
        lines = _part(head, rows, kept, right, indent)
        if _fits(lines, width):
            return lines
    found: list[list[str]] = []
    part = kept[:1]
    for column in kept[1:]:
        if len(part) > 1 and not _fits(_part(head, rows, [*part, column], right, indent), width):
            found.append(_part(head, rows, part, right, indent))
            part = kept[:1]
        part.append(column)
    lines = [line for one in [*found, _part(head, rows, part, right, indent)] for line in one]
    return lines if _fits(lines, width) else _told(head, rows, width)


def worded(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, right: str = "", indent: int = 0
) -> list[str]:
    """Return the lines of a table whose last column is text: wrapped, or below each row where there is no room beside.

    A table that is too wide even so is told row by row in words. The arguments are those of `table`.
    """
    before = table(head[:-1], [row[:-1] for row in rows], right=right, indent=indent)
    if not _fits(before, width):
        return _told(head, rows, width)
    room = width - max(map(len, before)) - len(SEPARATOR)
    if room >= LEAST_TEXT:
        return table(head, wrapped_rows(head, rows, width, indent=indent), right=right, indent=indent)
    texts = [head[-1], *(row[-1] for row in rows)]
    below = ([line, *labelled("", text, width, indent=indent + 2)] for line, text in zip(before, texts, strict=True))
    return [line for lines in below for line in lines]


def _part(
    head: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], right: str, indent: int
) -> list[str]:
    """Return a table of some of the columns."""
    cells = [[row[column] for column in columns] for row in rows]
    return table([head[column] for column in columns], cells, right=right, indent=indent)


def _fits(lines: Sequence[str], width: int) -> bool:
    return max(map(len, lines)) <= width


def _told(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return each row as an item of a list: the titles of the columns, each with what stands there."""
    texts = (
        ", ".join(joined(f"{title} {cell}".strip()) for title, cell in zip(head, row, strict=True) if cell)
        for row in rows
    )
    return [line for text in texts for line in bullet(text, width)]


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a cell, one at least."""
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    return [line.replace(_JOINT, " ") for line in lines] or [""]


def cut(text: str, width: int) -> str:
    """Return `text`, its end replaced by an ellipsis where it is longer than `width`."""
    return text if len(text) <= width else text[: max(1, width - 3)].rstrip() + "..."


def bars(rows: Sequence[tuple[str, float, str]], width: int = WIDTH, *, indent: int = 0) -> list[str]:
    """Return one bar for each (title, size, figures), as long as its share of the largest, if there is room."""
    if not rows:
        return []
    largest = max(size for _, size, _ in rows) or 1.0
    title = max(len(name) for name, _, _ in rows)
    figures = max(len(text) for _, _, text in rows)
    texts = [f"{' ' * indent}{name.ljust(title)}{SEPARATOR}{text.rjust(figures)}" for name, _, text in rows]
    cells = min(BAR, width - len(texts[0]) - len(SEPARATOR))
    if cells < 1:
        return texts
    sizes = (size for _, size, _ in rows)
    return [
        f"{text}{SEPARATOR}{FULL * max(1, round(cells * size / largest))}"
        for text, size in zip(texts, sizes, strict=True)
    ]
