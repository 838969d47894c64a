"""Which commands of a script would run: conditions whose sides are known are decided, others leave it open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from planner.configurations.shell.text import Text

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


@dataclass(slots=True)
class Block:
    """An open ``if``, loop, ``case``, group or function."""

    kind: str
    asking: bool = False
    """Whether the commands now are the condition."""
    test: bool | None = None
    """What the condition comes to; None if that is not known."""
    holds: bool | None = None
    """Whether what stands in it now would run."""
    done: bool | None = False
    """Whether a branch before would have run."""
    subject: str | None = None
    """What a ``case`` compares; None if it is not known."""
    patterns: list[Text] = field(default_factory=list)
    """What it is compared with now."""

    def ask(self) -> None:
        """Begin with a condition."""
        self.asking, self.test = True, None

    def then(self) -> None:
        """Begin with what stands under the condition."""
        self.asking = False
        self.holds = self.test if self.done is False else (False if self.done or self.test is False else None)
        self.done = True if self.holds or self.done else (self.done if self.holds is False else None)

    def match(self, patterns: list[Text]) -> None:
        """Begin with what a ``case`` runs for `patterns`."""
        found = [_matches(self.subject, pattern) for pattern in patterns]
        self.test = True if True in found else (None if None in found else False)
        self.then()

    def otherwise(self) -> None:
        """Begin with what runs where no condition held."""
        self.asking = False
        self.holds = None if self.done is None else not self.done


def _matches(subject: str | None, pattern: Text) -> bool | None:
    """Return whether a pattern of a ``case`` is met; None if that is not known."""
    if pattern.chars == "*":
        return True
    if subject is None or not pattern.is_known or set(pattern.chars) & set("*?["):
        return None
    return subject == pattern.chars


def decided(words: list[Text]) -> bool | None:
    """Return what a test such as ``[ $A -gt 1 ]`` comes to; None if that is not known."""
    found = [word.chars for word in words]
    if len(found) < 3 or (found[0], found[-1]) not in {("[", "]"), ("[[", "]]")}:
        return None
    if not all(word.is_known for word in words):
        return None
    inner = found[1:-1]
    if inner[0] == "!" and len(inner) > 1:
        other = _test(inner[1:])
        return None if other is None else not other
    return _test(inner)


def _test(words: list[str]) -> bool | None:
    if len(words) == 2 and words[0] in {"-z", "-n"}:
        return (words[1] == "") == (words[0] == "-z")
    if len(words) != 3:
        return None
    left, how, right = words
    if how in {"=", "==", "!="} and not set(right) & set("*?["):
        return (left == right) == (how != "!=")
    if how in _COMPARE and left.lstrip("-").isdecimal() and right.lstrip("-").isdecimal():
        return _COMPARE[how](int(left[:15]), int(right[:15]))
    return None
