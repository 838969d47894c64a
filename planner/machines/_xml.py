"""XML text to elements with their lines; entities are refused, and nothing outside the text is ever read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from planner.errors import SpecError
from planner.loader import MAX_BYTES

MAX_DEPTH = 64
"""Levels of nesting that are read; NCCL's deepest are about ten."""


@dataclass(slots=True)
class Element:
    """An element: its attributes, its text and what stands inside."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    inner: list[Element] = field(default_factory=list)

    def walk(self, tag: str) -> Iterator[Element]:
        """Return every element called `tag` inside, at any depth, in the order of the text."""
        for one in self.inner:
            if one.tag == tag:
                yield one
            yield from one.walk(tag)

    def at(self, path: str) -> Element | None:
        """Return the first element at `path`, as in ``pci/pci_bus_id``."""
        found: Element | None = self
        for tag in path.split("/"):
            found = next((one for one in found.inner if one.tag == tag), None) if found else None
        return found

    def told(self, *paths: str) -> str:
        """Return the text at the first of `paths` that has one, other than "not available"."""
        texts = (one.text.strip() for path in paths if (one := self.at(path)))
        return next((text for text in texts if text and text not in {"N/A", "[N/A]"}), "")


def read_xml(text: str, origin: str) -> Element:
    """Return the root of an XML text.

    Raises:
        SpecError: the text is no XML, or declares entities.

    """
    if len(text) > MAX_BYTES:
        raise SpecError.of(origin, f"is larger than {MAX_BYTES // 2**20} MiB; no dump of one machine is")
    builder = _Builder(origin)
    try:
        # The encoding that the text declares was used when it was read.
        builder.parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        message = (
            f"is not whole XML: {what} at column {error.offset + 1}; the dump is cut off or was edited, take it anew"
        )
        raise SpecError.of(f"{origin}:{error.lineno}", message) from None
    return builder.root.inner[0]


class _Builder:
    """Builds elements from the events of a parser."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.root = Element("", {}, 1)
        self.open = [self.root]
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.EntityDeclHandler = self.entity

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if len(self.open) > MAX_DEPTH:
            raise SpecError.of(f"{self.origin}:{line}", f"is nested more than {MAX_DEPTH} levels deep; no dump is")
        one = Element(tag, attributes, line)
        self.open[-1].inner.append(one)
        self.open.append(one)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        self.open[-1].text += text

    def entity(self, *_declared: object) -> None:
        line = self.parser.CurrentLineNumber
        raise SpecError.of(
            f"{self.origin}:{line}", "declares entities, which are not read; give the dump as the tool wrote it"
        )
