"""What a command reads from and writes to, which is no word of it."""

from __future__ import annotations

from planner.configurations.shell.lexer import Operator, Token, Word


def without_redirections(listed: list[Token]) -> list[Word]:
    """Return the words of a command that are not files it reads or writes."""
    found: list[Word] = []
    skip = False
    for token in listed:
        if isinstance(token, Operator):
            if found and found[-1].plain in {"0", "1", "2"} and _touches(found[-1], token):
                found.pop()
            skip = token.text not in {"<<", "<<-"}
        elif not skip:
            found.append(token)
        else:
            skip = False
    return found


def _touches(word: Word, operator: Operator) -> bool:
    return word.spot[0] == operator.spot[0] and word.spot[1] + 1 == operator.spot[1]
