"""The words and operators of a shell script, by the rules of bash; nothing is expanded yet, and nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.configurations.shell.text import Text

OPERATORS = ("&&", "||", ";;", "<<<", "<<-", "<<", ">>", ">&", "<&", "&>", "|&", ";", "&", "|", "(", ")", "<", ">")
"""The longest first where one begins with another."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word: ``text``, ``variable`` (its name or what stands in its braces), ``sum`` or ``command``."""

    kind: str
    text: Text
    quoted: bool


@dataclass(frozen=True, slots=True)
class Word:
    """What stands between blanks, in pieces; an array's literal holds words of its own."""

    parts: tuple[Part, ...]
    spot: tuple[int, int]
    items: tuple[Word, ...] | None = None
    """Words in the parentheses of ``NAME=( ... )``; None if it has none."""

    @property
    def plain(self) -> str | None:
        """The word if it is written without quotes and variables, else None."""
        if len(self.parts) == 1 and self.parts[0].kind == "text" and not self.parts[0].quoted:
            return self.parts[0].text.chars
        return None


@dataclass(frozen=True, slots=True)
class Operator:
    r"""A character or two that separate commands; a new line is ``\\n``."""

    text: str
    spot: tuple[int, int]


Token = Word | Operator


def tokens(text: Text) -> list[Token]:
    """Return the words and operators of `text`; what quotes leave open ends with the text."""
    return _Lexer(text).run()


def plain_words(text: Text) -> list[Text]:
    """Return the words of a list of arguments, where quotes and comments count, but no operators and variables."""
    lexer = _Lexer(text)
    found = []
    while lexer.index < len(lexer.chars):
        lexer.skip_blanks()
        if lexer.index < len(lexer.chars) and lexer.chars[lexer.index] == "\n":
            lexer.index += 1
        elif lexer.index < len(lexer.chars):
            found.append(lexer.plain_word())
    return found


class _Lexer:
    """Goes through the text once."""

    def __init__(self, text: Text) -> None:
        self.text, self.chars, self.index = text, text.chars, 0
        self.heredocs: list[tuple[str, bool]] = []

    def run(self) -> list[Token]:
        """Return all tokens."""
        found: list[Token] = []
        while (token := self.token()) is not None:
            found.append(token)
            if isinstance(token, Operator) and token.text in {"<<", "<<-"}:
                word = self.token()
                if isinstance(word, Word):
                    self.heredocs.append(("".join(part.text.chars for part in word.parts), token.text == "<<-"))
        return found

    def token(self) -> Token | None:
        """Return the next token, None at the end."""
        self.skip_blanks()
        if self.index >= len(self.chars):
            return None
        spot = self.text.at[self.index]
        if self.chars[self.index] == "\n":
            self.index += 1
            self.skip_heredocs()
            return Operator("\n", spot)
        for operator in OPERATORS:
            if self.chars.startswith(operator, self.index):
                self.index += len(operator)
                return Operator(operator, spot)
        return self.word()

    def skip_blanks(self) -> None:
        """Go to what comes next: over blanks, continued lines and a comment."""
        while self.index < len(self.chars):
            if self.chars[self.index] in " \t\r":
                self.index += 1
            elif self.chars.startswith(("\\\n", "\\\r\n"), self.index):
                self.index = self.chars.index("\n", self.index) + 1
            elif self.chars[self.index] == "#":
                end = self.chars.find("\n", self.index)
                self.index = len(self.chars) if end < 0 else end
            else:
                return

    def skip_heredocs(self) -> None:
        """Go over the text that a command reads from the lines below it."""
        for mark, indented in self.heredocs:
            while self.index < len(self.chars):
                end = self.chars.find("\n", self.index)
                end = len(self.chars) if end < 0 else end
                line = self.chars[self.index : end]
                self.index = end + 1
                if (line.lstrip("\t") if indented else line).rstrip("\r") == mark:
                    break
        self.heredocs.clear()

    def word(self) -> Word:
        """Return the word that begins here."""
        spot, parts = self.text.at[self.index], list[Part]()
        while self.index < len(self.chars):
            char = self.chars[self.index]
            if char in " \t\r\n;&|<>)":
                break
            if char == "(":
                if len(parts) == 1 and parts[0].kind == "text" and _ASSIGNMENT.match(parts[0].text.chars):
                    self.index += 1
                    return Word(tuple(parts), spot, self.items())
                break
            if self.chars.startswith(("\\\n", "\\\r\n"), self.index):
                self.index = self.chars.index("\n", self.index) + 1
            elif char == "'" or self.chars.startswith("$'", self.index):
                self.index += 1 + (char == "$")
                self.add(parts, "text", self.until("'"), quoted=True)
            elif char == '"':
                self.index += 1
                self.double_quotes(parts)
            elif char == "\\":
                self.add(parts, "text", self.text[self.index + 1 : self.index + 2], quoted=True)
                self.index += 2
            elif char in "$`":
                self.dollar(parts, quoted=False)
            else:
                self.add(parts, "text", self.text[self.index : self.index + 1], quoted=False)
                self.index += 1
        return Word(tuple(parts), spot)

    def plain_word(self) -> Text:
        """Return the word that begins here, up to a blank."""
        parts: list[Text] = []
        while self.index < len(self.chars) and not self.chars[self.index].isspace():
            char = self.chars[self.index]
            self.index += 1
            if char in "'\"":
                parts.append(self.until(char))
            elif char == "\\" and self.chars[self.index : self.index + 1] not in {"", "\n"}:
                parts.append(self.text[self.index : self.index + 1])
                self.index += 1
            elif char != "\\":
                parts.append(self.text[self.index - 1 : self.index])
        return Text.joined(parts)

    def items(self) -> tuple[Word, ...]:
        """Return the words up to the parenthesis that ends an array."""
        found = []
        while (token := self.token()) is not None:
            if isinstance(token, Word):
                found.append(token)
            elif token.text == ")":
                break
        return tuple(found)

    def double_quotes(self, parts: list[Part]) -> None:
        """Add what stands in double quotes, where variables still count."""
        self.add(parts, "text", Text(), quoted=True)
        while self.index < len(self.chars) and self.chars[self.index] != '"':
            char, after = self.chars[self.index], self.chars[self.index + 1 : self.index + 2]
            if char == "\\" and after in {"$", "`", '"', "\\", "\n"}:
                if after != "\n":
                    self.add(parts, "text", self.text[self.index + 1 : self.index + 2], quoted=True)
                self.index += 2
            elif char in "$`":
                self.dollar(parts, quoted=True)
            else:
                self.add(parts, "text", self.text[self.index : self.index + 1], quoted=True)
                self.index += 1
        self.index += 1

    def dollar(self, parts: list[Part], *, quoted: bool) -> None:
        """Add what begins with a dollar or a back-quote."""
        begin = self.index
        if self.chars[begin] == "`":
            self.index += 1
            self.until("`")
            self.add(parts, "command", self.text[begin : self.index], quoted=quoted)
        elif self.chars.startswith("$((", begin):
            self.add(parts, "sum", self.bracketed(begin + 3, "(", ")", closing="))"), quoted=quoted)
        elif self.chars.startswith("$(", begin):
            self.bracketed(begin + 2, "(", ")")
            self.add(parts, "command", self.text[begin : self.index], quoted=quoted)
        elif self.chars.startswith("${", begin):
            self.add(parts, "variable", self.bracketed(begin + 2, "{", "}"), quoted=quoted)
        elif name := _NAME.match(self.chars, begin + 1):
            self.index = name.end()
            self.add(parts, "variable", self.text[begin + 1 : self.index], quoted=quoted)
        else:
            self.add(parts, "text", self.text[begin : begin + 1], quoted=quoted)
            self.index += 1

    def bracketed(self, begin: int, opening: str, closing_one: str, closing: str = "") -> Text:
        """Return what stands from `begin` to the bracket that closes, and go behind it."""
        depth, index = 0, begin
        while index < len(self.chars):
            if depth == 0 and self.chars.startswith(closing or closing_one, index):
                self.index = index + len(closing or closing_one)
                return self.text[begin:index]
            depth += (self.chars[index] == opening) - (self.chars[index] == closing_one)
            index += 1
        self.index = len(self.chars)
        return self.text[begin:index]

    def until(self, mark: str) -> Text:
        """Return what stands up to `mark`, and go behind it."""
        begin, end = self.index, self.chars.find(mark, self.index)
        end = len(self.chars) if end < 0 else end
        self.index = end + 1
        return self.text[begin:end]

    @staticmethod
    def add(parts: list[Part], kind: str, text: Text, *, quoted: bool) -> None:
        """Add a piece, to the one before if both are text alike."""
        if kind == "text" and parts and (parts[-1].kind, parts[-1].quoted) == ("text", quoted):
            parts[-1] = Part("text", Text.joined((parts[-1].text, text)), quoted)
        else:
            parts.append(Part(kind, text, quoted))
