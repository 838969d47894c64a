"""What words of a script come to, as far as that can be told without running anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from planner.configurations.shell.lexer import Part, Word, tokens
from planner.configurations.shell.text import MAYBE, UNKNOWN, Text

_BRACES = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9@*]+)(?P<index>\[[^]]*\])?(?:(?P<how>:?[-=])(?P<default>.*))?\Z", re.DOTALL
)
_SUM = re.compile(r"\s*(?:(\d{1,18})|\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?|(\*\*|[-+*/%()]))")
_LARGE = 10**15
"""Results beyond are no sizes of anything."""


@dataclass(slots=True)
class Variables:
    """What a script has set so far, and what could not be told."""

    values: dict[str, Text] = field(default_factory=dict)
    arrays: dict[str, list[Text]] = field(default_factory=dict)
    defaulted: list[str] = field(default_factory=list)
    """Names whose ``${NAME:-default}`` was taken."""
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """(line, column) of a piece that is unknown -> why."""

    def unknown(self, spot: tuple[int, int], reason: str) -> Text:
        """Return a piece that cannot be told, and keep why."""
        self.reasons.setdefault(spot, reason)
        return Text.made(UNKNOWN, spot)

    def value(self, name: str, spot: tuple[int, int]) -> Text:
        """Return the value of a variable, unknown if the script does not set it."""
        if name in self.values:
            return self.values[name]
        if name in self.arrays:
            return self.arrays[name][0] if self.arrays[name] else Text()
        return self.unknown(spot, f"${name} is not set in the script")


def expanded(word: Word, variables: Variables) -> list[Text]:
    """Return the words that a word becomes: one, or none or several where it has unquoted variables or arrays."""
    fields: list[Text] = []
    current: Text | None = None
    for part in word.parts:
        pieces = _pieces(part, variables)
        for number, piece in enumerate(pieces):
            if number:
                fields += [] if current is None else [current]
                current = None
            current = piece if current is None else Text.joined((current, piece))
    return fields if current is None else [*fields, current]


def single(word: Word, variables: Variables) -> Text:
    """Return a word as the value of an assignment, where blanks do not split."""
    parts = (_joined(part, variables) for part in word.parts)
    return Text.joined(parts)


def _joined(part: Part, variables: Variables) -> Text:
    pieces = _pieces(Part(part.kind, part.text, quoted=True), variables)
    return Text.joined(_between(pieces, Text(" ", (part.text.spot,))))


def _between(pieces: list[Text], blank: Text) -> list[Text]:
    return [item for piece in pieces for item in (piece, blank)][:-1]


def _pieces(part: Part, variables: Variables) -> list[Text]:
    """Return the words of a part: the first joins what stands before it, the last what follows."""
    if part.kind == "text":
        return [part.text]
    spot = part.text.spot
    if part.kind == "command":
        return [variables.unknown(spot, "what a command prints is only known when it runs")]
    if part.kind == "sum":
        return [_sum(part.text, variables)]
    found = _variable(part.text, variables)
    if part.quoted:
        return found
    return [word for text in found for word in text.words()]


def _variable(text: Text, variables: Variables) -> list[Text]:
    """Return the values of ``NAME``, ``NAME[@]`` or ``NAME:-default``."""
    match = _BRACES.match(text.chars)
    if match is None:
        return [variables.unknown(text.spot, f"${{{_name(text.chars)}...}} changes text, which is not followed")]
    name, index, how = match["name"], match["index"], match["how"]
    if index in {"[@]", "[*]"} and name in variables.arrays:
        listed = variables.arrays[name]
        return listed if index == "[@]" else [Text.joined(_between(listed, Text(" ", (text.spot,))))]
    if index and index not in {"[@]", "[*]"} and name in variables.arrays:
        number = index[1:-1]
        listed = variables.arrays[name]
        if number.isdecimal() and int(number[:6]) < len(listed):
            return [listed[int(number[:6])]]
        return [variables.unknown(text.spot, f"${{{text.chars}}} is not set in the script")]
    known = variables.values.get(name) or next(iter(variables.arrays.get(name, ())), None)
    if how and (known is None or (how.startswith(":") and not known.chars)):
        return [_default(name, text, match, variables)]
    return [variables.value(name, text.spot)]


def _default(name: str, text: Text, match: re.Match[str], variables: Variables) -> Text:
    """Return the default of a variable that the script does not set, and set it where ``=`` says so."""
    if name not in variables.defaulted and name not in variables.values:
        variables.defaulted.append(name)
    inner = text[match.start("default") : match.end("default")]
    words = [token for token in tokens(inner) if isinstance(token, Word)]
    found = Text.joined(_between([single(word, variables) for word in words], Text(" ", (text.spot,))))
    if match["how"].endswith("="):
        variables.values[name] = found
    return found


def _name(chars: str) -> str:
    match = re.match(r"[#!]?[A-Za-z_0-9]*", chars)
    return match[0] if match else ""


def _sum(text: Text, variables: Variables) -> Text:
    """Return the value of whole-number arithmetic."""
    value = evaluated(text, variables)
    if value is None:
        return variables.unknown(text.spot, f"$(({text.chars.strip()[:40]})) cannot be worked out")
    return Text.made(str(value), text.spot)


def evaluated(text: Text, variables: Variables) -> int | None:
    """Return the value of an arithmetic expression of + - * / % and brackets; None where it cannot be told."""
    items: list[int | str] = []
    position = 0
    chars = text.chars.rstrip()
    while position < len(chars):
        match = _SUM.match(chars, position)
        if match is None or len(items) > 200:
            return None
        if match[2]:
            written = variables.value(match[2], text.spot).chars.strip()
            if not re.fullmatch(r"-?[0-9]{1,15}", written):
                return None
            items.append(int(written))
        else:
            items.append(int(match[1]) if match[1] else match[3])
        position = match.end()
    try:
        value, rest = _terms(items, 0)
    except (IndexError, ZeroDivisionError, ValueError):
        return None
    return value if rest == len(items) and abs(value) < _LARGE else None


def _terms(items: list[int | str], at: int) -> tuple[int, int]:
    return _chain(items, at, _factors, {"+": lambda a, b: a + b, "-": lambda a, b: a - b})


def _factors(items: list[int | str], at: int) -> tuple[int, int]:
    return _chain(
        items, at, _atom, {"*": lambda a, b: a * b, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b)}
    )


def _quotient(a: int, b: int) -> int:
    """Return a / b rounded towards zero, as the shell does."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _chain(
    items: list[int | str],
    at: int,
    inner: Callable[[list[int | str], int], tuple[int, int]],
    operators: dict[str, Callable[[int, int], int]],
) -> tuple[int, int]:
    value, at = inner(items, at)
    while at < len(items) and items[at] in operators:
        other, after = inner(items, at + 1)
        value, at = operators[str(items[at])](value, other), after
    return value, at


def _atom(items: list[int | str], at: int) -> tuple[int, int]:
    item = items[at]
    if item == "(":
        value, at = _terms(items, at + 1)
        if items[at] != ")":
            raise ValueError(items[at])
        return value, at + 1
    if item in {"-", "+"}:
        value, at = _atom(items, at + 1)
        return (-value if item == "-" else value), at
    return (item, at + 1) if isinstance(item, int) else (_no_number(item), at)


def _no_number(item: str) -> int:
    raise ValueError(item)


def marked(text: Text) -> Text:
    """Return `text` with every word marked as one that is there only under a condition."""
    words = (
        word if word.chars.startswith(MAYBE) else Text.joined((Text.made(MAYBE, word.spot), word))
        for word in text.words()
    )
    return Text.joined(_between(list(words), Text(" ", (text.spot,))))
