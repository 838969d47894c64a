"""YAML text to a document, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from planner.errors import Problem, SpecError
from planner.loader.document import MAX_DEPTH, MAX_VALUES, Document, Path, dotted, too_deep, too_many
from planner.loader.words import scalar


def read_yaml(text: str, origin: str) -> Document:
    """Read `text` event by event, so that depth and size are bounded before anything is built.

    Raises:
        SpecError: the text cannot be read.

    """
    import yaml

    reader = _Reader(events=iter(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))), origin=origin)
    try:
        value = reader.document()
    except yaml.YAMLError as error:
        last = text.rstrip().count("\n") + 1
        raise SpecError([*reader.problems, _syntax_problem(error, text.splitlines(), origin, last)]) from None
    found, lines = tuple(reader.problems), reader.lines
    return Document(value=value, origin=origin, problems=found, lines=lambda: lines)


def _syntax_problem(error: Any, rows: list[str], origin: str, last: int) -> Problem:
    """Translate an error of the YAML parser."""
    mark = getattr(error, "problem_mark", None)
    line = min(mark.line + 1, last) if mark else 1
    row = rows[line - 1] if line <= len(rows) else ""
    what = str(getattr(error, "problem", None) or error).strip()
    context = getattr(error, "context", None)
    if "\t" in row[: len(row) - len(row.lstrip())] or "tab character" in what:
        message = "a tab indents this line; YAML wants spaces"
    elif "nesting depth" in what:
        message = too_deep()
    elif "mapping values" in what:
        message = "has a second `: ` or wrong indentation; put text that holds a colon in quotes"
    elif "cannot start any token" in what:
        message = f"`{row.strip()[:40]}` has a character that cannot begin a value in YAML; put the text in quotes"
    elif "undefined alias" in what or "duplicate anchor" in what:
        message = f"{what}; write the value out instead"
    else:
        message = (
            f"is not valid YAML: {f'{context}, ' if context else ''}{what}; check indentation, quotes and brackets"
        )
    return Problem(f"{origin}:{line}", message)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Builds the value of one document from parser events."""

    events: Iterator[Any]
    origin: str
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    """Value and number of values of each finished anchor."""
    count: int = 0

    def document(self) -> Any:
        """Return the value of the only document, None if there is none."""
        next(self.events)
        if type(next(self.events)).__name__ == "StreamEndEvent":
            return None
        value = self.node(next(self.events), ())
        next(self.events)
        if type(end := next(self.events)).__name__ != "StreamEndEvent":
            line = end.start_mark.line + 1
            raise SpecError.of(f"{self.origin}:{line}", "begins a second document; write one document per file")
        return value

    def node(self, event: Any, path: Path) -> Any:
        """Return the value that begins with `event`."""
        line = event.start_mark.line + 1
        self.lines.setdefault(path, line)
        self.count += 1
        kind = type(event).__name__
        if kind == "AliasEvent":
            value, size = self.alias(event.anchor, path)
            self.count += size
        self.check_limits(path, line)
        if kind == "AliasEvent":
            return value
        if event.tag is not None and (kind != "ScalarEvent" or event.tag != "!"):
            self.complain(
                path, f"has the tag {event.tag}, and tags are not read; write plain text, numbers, lists or keys"
            )
        before = self.count
        if kind == "ScalarEvent":
            value = self.scalar(event, path)
        elif kind == "SequenceStartEvent":
            value = self.sequence(path)
        else:
            value = self.mapping(path)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.count - before)
        return value

    def check_limits(self, path: Path, line: int) -> None:
        """Stop reading at bombs."""
        if len(path) > MAX_DEPTH:
            raise SpecError.of(f"{self.origin}:{line}", too_deep())
        if self.count > MAX_VALUES:
            raise SpecError.of(f"{self.origin}:{line}", too_many())

    def alias(self, name: str, path: Path) -> tuple[Any, int]:
        """Return the value that an alias repeats, and how many values that is."""
        if name not in self.anchors:
            raise SpecError.of(self.at(path), f"*{name} stands inside or before what it repeats; write the value out")
        return self.anchors[name]

    def scalar(self, event: Any, path: Path) -> Any:
        """Return the value of a word or a quoted text."""
        if not event.implicit[0]:
            return event.value
        try:
            return scalar(event.value)
        except ValueError as error:
            self.complain(path, str(error))
            return event.value

    def sequence(self, path: Path) -> list[Any]:
        """Return a list."""
        items: list[Any] = []
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            items.append(self.node(event, (*path, len(items))))
        return items

    def mapping(self, path: Path) -> dict[str, Any]:
        """Return a dict; keys are text as it is written."""
        items: dict[str, Any] = {}
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            line = event.start_mark.line + 1
            if type(event).__name__ != "ScalarEvent":
                raise SpecError.of(
                    f"{self.origin}:{line} {dotted(path)}".rstrip(), "has a key that is not a word; write `key: value`"
                )
            key = str(event.value)
            inner = (*path, key)
            if key in items:
                self.duplicate(inner, line)
                self.node(next(self.events), (*path, f"{key} (again)"))
                continue
            if key == "<<" and event.implicit[0]:
                self.lines[inner] = line
                self.complain(inner, "merge keys are not read; write the keys out")
                self.node(next(self.events), inner)
                continue
            self.lines[inner] = line
            items[key] = self.node(next(self.events), inner)
        return items

    def duplicate(self, path: Path, line: int) -> None:
        """Complain of a key that was given before."""
        message = f"is a duplicate key, given before in line {self.lines[path]}; remove one of the two"
        self.problems.append(Problem(f"{self.origin}:{line} {dotted(path)}", message))

    def at(self, path: Path) -> str:
        """Return the place of `path`."""
        return f"{self.origin}:{self.lines[path]} {dotted(path)}".rstrip()

    def complain(self, path: Path, message: str) -> None:
        """Note a problem and go on."""
        self.problems.append(Problem(self.at(path), message))
