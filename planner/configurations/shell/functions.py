"""Functions of a shell script, taken out of it: what they hold is followed where they are called."""

from __future__ import annotations

from collections.abc import Sequence

from planner.configurations.shell.lexer import Operator, Token, Word


def without_functions(listed: Sequence[Token]) -> tuple[list[Token], dict[str, list[Token]]]:
    """Return what stands outside of functions, and the body of every function by its name."""
    rest: list[Token] = []
    bodies: dict[str, list[Token]] = {}
    index = 0
    while index < len(listed):
        found = _header(listed, index)
        if found is None:
            rest.append(listed[index])
            index += 1
        else:
            name, begin = found
            end = _end(listed, begin)
            bodies[name] = list(listed[begin:end])
            index = end + 1
    return rest, bodies


def _header(listed: Sequence[Token], index: int) -> tuple[str, int] | None:
    """Return (name, where its body begins) of a function whose first word stands at `index`."""
    first = listed[index]
    if not isinstance(first, Word) or not first.plain:
        return None
    at, named = (index + 1, first.plain == "function")
    name = first.plain
    if named:
        after = listed[at] if at < len(listed) else None
        if not isinstance(after, Word) or not after.plain:
            return None
        name, at = after.plain, at + 1
    brackets = [token.text if isinstance(token, Operator) else "" for token in listed[at : at + 2]] == ["(", ")"]
    if not brackets and not named:
        return None
    at += 2 * brackets
    while at < len(listed) and _is(listed[at], "\n"):
        at += 1
    token = listed[at] if at < len(listed) else None
    return (name, at + 1) if isinstance(token, Word) and token.plain == "{" else None


def _end(listed: Sequence[Token], begin: int) -> int:
    """Return where the brace stands that closes what was opened before `begin`."""
    depth = 1
    for index in range(begin, len(listed)):
        token = listed[index]
        plain = token.plain if isinstance(token, Word) else None
        depth += (plain == "{") - (plain == "}")
        if depth == 0:
            return index
    return len(listed)


def _is(token: Token, text: str) -> bool:
    return isinstance(token, Operator) and token.text == text
