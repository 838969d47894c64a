"""HTML and SVG from values: everything that is no markup yet is escaped."""

from __future__ import annotations

from html import escape

from planner.report.looks import COMMANDS


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element.

    Args:
        name: of the element.
        children: markup, or text, which is escaped.
        attributes: by name, underscores standing for hyphens and one at the end for nothing (``class_``); None and
            False leave one out, True writes its name alone.

    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    inner = join(*children)
    return Markup(f"<{name}{written}>{inner}</{name}>")


def void(name: str, /, **attributes: str | float | bool | None) -> Markup:
    """Return an element without an end."""
    return Markup(f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>")


def join(*children: str) -> Markup:
    """Return children after one another; text is escaped."""
    return Markup("".join(child if isinstance(child, Markup) else _escaped(child) for child in children))


def figure(value: float, text: str) -> Markup:
    """Return a number as people read it, with the exact one for machines: a value of `Subject.document`."""
    return tag("data", text, value=repr(float(value)))


def table(head: list[str], rows: list[list[str]], *, right: tuple[str, ...] = (), caption: str = "") -> Markup:
    """Return a table that scrolls sideways where it is too wide; the columns in `right` hold numbers."""
    classes = ["n" if title in right else None for title in head]
    body = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, classes, strict=True))) for row in rows]
    titles = [tag("th", title, class_=kind, scope="col") for title, kind in zip(head, classes, strict=True)]
    made = tag(
        "table",
        tag("caption", caption) if caption else "",
        tag("thead", tag("tr", *titles)),
        tag("tbody", *body),
    )
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def percent(share: float) -> str:
    """Return a length along an axis as CSS and SVG write it."""
    return f"{100 * share:.4g}%"


def _escaped(text: str) -> str:
    """Return text that is no markup, and changes the direction of no text behind it."""
    return escape(text.translate(COMMANDS))


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'
