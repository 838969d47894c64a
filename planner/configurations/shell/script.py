"""A shell script, followed without running anything: the commands that it would start, and what it sets.

What stands under conditions that are not decided, in loops and in functions is there perhaps; what is set there is
unknown from then on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from planner.configurations.shell.blocks import Block, decided
from planner.configurations.shell.expand import Variables, expanded, marked, single
from planner.configurations.shell.functions import without_functions
from planner.configurations.shell.lexer import Operator, Token, Word, tokens
from planner.configurations.shell.redirections import without_redirections
from planner.configurations.shell.text import MAYBE, UNKNOWN, Text

DECLARES = {"export", "declare", "local", "readonly", "typeset"}
SKIPPED = {"exec", "nohup", "time", "sudo", "command", "builtin", "!", "env", "set"}
"""Words before a command that change nothing of what it is."""
REDIRECTIONS = {"<", ">", ">>", ">&", "<&", "&>", "<<", "<<-", "<<<"}
SHELLS = {"bash", "sh", "zsh"}
PRINTS = {"echo", "printf"}
"""Commands that start nothing: scripts show with them what they are about to run."""
_OPENS = {"if", "for", "while", "until", "select"}
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_DEPTH = 4
"""Scripts in strings in scripts that are followed."""
_LONGEST, _MOST, _STEPS = 200_000, 20_000, 50_000
"""Characters of a variable, words of an array and commands of a script that are followed; more would be a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What would be started."""

    words: tuple[Text, ...]
    environment: tuple[tuple[str, Text], ...] = ()
    """Variables that are set for it alone."""
    piped: bool = False
    """Whether its output goes on to another command."""
    sure: bool = True
    """Whether it stands under no condition that was not decided."""


@dataclass(slots=True, kw_only=True)
class Script:
    """A script, followed to its end."""

    commands: list[Command] = field(default_factory=list)
    variables: Variables = field(default_factory=Variables)
    exported: list[str] = field(default_factory=list)
    """Names of variables that commands get."""
    functions: dict[str, list[Token]] = field(default_factory=dict)
    """Functions that were not called yet."""
    called: dict[str, list[Token]] = field(default_factory=dict)
    steps: int = 0
    """Commands so far."""
    undecided: list[int] = field(default_factory=list)
    """Lines of conditions, loops and files read in, which are not followed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be resolved, in sentences."""
        taken = ", ".join(name for name in self.variables.defaulted if not name.isdecimal())
        lines = ", ".join(map(str, sorted(set(self.undecided))))
        default = f"defaults are taken for what the environment may set: {taken}"
        open_ = f"conditions, loops and files read in are not followed, and what they set is left open: line {lines}"
        return (*((default,) if taken else ()), *((open_,) if lines else ()))

    def run(self, text: Text) -> None:
        """Follow more text, such as the value of a variable that holds a command."""
        _Reader(self, 1, sure=True).run(text)

    def environment(self, command: Command) -> dict[str, Text]:
        """Return what variables a command gets, as far as the script sets them."""
        values = self.variables.values
        return {**{name: values[name] for name in self.exported if name in values}, **dict(command.environment)}


def follow(text: str, known: dict[str, str] | None = None) -> Script:
    """Return what a script does.

    Args:
        text: of the script.
        known: variables that are set when it starts.
    """
    script = Script()
    for name, value in (known or {}).items():
        script.variables.values[name] = Text.made(value, (0, 0))
    reader = _Reader(script, 0, sure=True)
    reader.run(Text.of(text))
    while script.functions:
        name, body = script.functions.popitem()
        script.called[name] = body
        reader.follow(body)
    return script


class _Reader:
    """Follows the commands in their order."""

    def __init__(self, script: Script, depth: int, *, sure: bool) -> None:
        self.script, self.variables, self.depth, self.outer = script, script.variables, depth, sure
        self.blocks: list[Block] = []

    def run(self, text: Text) -> None:
        """Follow `text`; its functions where they are called, those that are not at its end."""
        rest, functions = without_functions(tokens(text))
        self.script.functions |= functions
        self.follow(rest)

    def follow(self, listed: list[Token]) -> None:
        """Follow the commands in `listed`."""
        begin, chained = 0, False
        for index, token in enumerate([*listed, Operator("\n", (0, 0))]):
            if isinstance(token, Operator) and token.text not in REDIRECTIONS:
                self.command(without_redirections(listed[begin:index]), token.text, chained=chained)
                chained = token.text in {"&&", "||"}
                begin = index + 1

    @property
    def holds(self) -> bool | None:
        """Whether what comes now would run."""
        if any(block.holds is False for block in self.blocks):
            return False
        return True if self.outer and all(block.holds for block in self.blocks) else None

    def command(self, words: list[Word], end: str, *, chained: bool) -> None:
        """Follow one command, which the operator `end` ends."""
        words = self.without_keywords(words)
        block = self.blocks[-1] if self.blocks else None
        if block and block.kind == "case" and block.asking:
            block.patterns += [single(word, self.variables) for word in words]
            if end == ")":
                block.match(block.patterns)
        elif not words:
            pass
        elif block and block.asking:
            known = not chained and end not in {"&&", "||", "|"}
            block.test = decided([single(word, self.variables) for word in words]) if known else None
            if block.test is None and block.kind == "if":
                self.script.undecided.append(words[0].spot[0])
        elif self.holds is not False:
            self.do(words, piped=end in {"|", "|&"}, sure=bool(self.holds) and not chained)
        if block and block.kind == "case" and end == ";;":
            block.asking, block.patterns = True, []

    def without_keywords(self, words: list[Word]) -> list[Word]:
        """Return a command behind the keywords that begin or end a block before it."""
        while words and (key := words[0].plain):
            if key == "case":
                subject = single(words[1], self.variables) if len(words) > 1 else Text(UNKNOWN)
                self.blocks.append(Block(key, asking=True, subject=subject.chars if subject.is_known else None))
                self.script.undecided += [] if subject.is_known else [words[0].spot[0]]
                words = words[2:]
            elif key in _OPENS:
                self.blocks.append(Block(key, asking=key in {"if", "while", "until"}))
                if key != "if":
                    self.script.undecided.append(words[0].spot[0])
                if key in {"for", "select"}:
                    return []
            elif key == "{":
                self.blocks.append(Block("group", holds=True))
            elif key in {"fi", "done", "esac", "}"}:
                self.blocks = self.blocks[:-1]
            elif key in {"then", "elif", "else", "do"} and self.blocks:
                block = self.blocks[-1]
                {"then": block.then, "elif": block.ask, "else": block.otherwise, "do": block.then}[key]()
                block.holds = None if key == "do" else block.holds
            else:
                break
            words = words[1:]
        return words

    def do(self, words: list[Word], *, piped: bool, sure: bool) -> None:
        """Set what a command sets, and keep it where it is one that starts something."""
        self.script.steps += 1
        if self.script.steps > _STEPS:
            return
        local: list[tuple[str, Text]] = []
        while words and (found := _assignment(words[0])):
            name, adds, word = found
            if len(words) > 1 and not all(_assignment(other) for other in words):
                local.append((name, single(word, self.variables)))
            else:
                self.assign(name, word, adds=adds, sure=sure)
            words = words[1:]
        while words and words[0].plain in SKIPPED:
            words = words[1:]
            while words and (found := _assignment(words[0])):
                local.append((found[0], single(found[2], self.variables)))
                words = words[1:]
        if words and words[0].plain in DECLARES:
            self.declare(words, sure=sure)
        elif words:
            texts = [text for word in words for text in expanded(word, self.variables)]
            self.start(texts, local, piped=piped, sure=sure)

    def declare(self, words: list[Word], *, sure: bool) -> None:
        """Set what ``export`` and its like set."""
        exports = words[0].plain == "export" or any(word.plain == "-x" for word in words)
        for word in words[1:]:
            found = _assignment(word)
            name = found[0] if found else (word.plain or "")
            if found:
                self.assign(found[0], found[2], adds=found[1], sure=sure)
            if exports and name and not name.startswith("-") and name not in self.script.exported:
                self.script.exported.append(name)

    def start(self, texts: list[Text], local: list[tuple[str, Text]], *, piped: bool, sure: bool) -> None:
        """Keep a command; scripts in its words are followed too."""
        if not texts:
            return
        first = texts[0].chars.rpartition("/")[2]
        body = self.script.functions.pop(first, None) or self.script.called.get(first)
        if body is not None:
            self.script.called[first] = body
            if self.depth < _DEPTH:
                _Reader(self.script, self.depth + 1, sure=sure).follow(body)
            return
        inner = _inner(texts, first)
        if inner is not None and self.depth < _DEPTH:
            _Reader(self.script, self.depth + 1, sure=sure).run(inner)
            return
        if first in PRINTS:
            return
        if first in {"source", "."}:
            self.script.undecided.append(texts[0].spot[0])
        self.script.commands.append(Command(words=tuple(texts), environment=tuple(local), piped=piped, sure=sure))
        at = next((index + 1 for index, text in enumerate(texts[:-1]) if text.chars in {"-c", "-lc"} and index), None)
        if at and texts[at - 2].chars.rpartition("/")[2] in SHELLS and self.depth < _DEPTH:
            _Reader(self.script, self.depth + 1, sure=sure).run(texts[at])

    def assign(self, name: str, word: Word, *, adds: bool, sure: bool) -> None:
        """Set a variable; where it is not sure that the line runs, what it becomes is open."""
        values, arrays = self.variables.values, self.variables.arrays
        if word.items is not None:
            items = [text for item in word.items for text in expanded(item, self.variables)]
            before = arrays.get(name, [])
            if sure:
                arrays[name] = ([*before, *items] if adds else items)[:_MOST]
            else:
                kept = before if adds else [marked(text) for text in before]
                arrays[name] = [*kept, *(marked(text) for text in items)][:_MOST]
            values.pop(name, None)
            return
        text, before_text = single(word, self.variables), values.get(name, Text())
        arrays.pop(name, None)
        if len(text.chars) + len(before_text.chars) > _LONGEST:
            values[name] = self.variables.unknown(word.spot, f"${name} grows too long")
        elif sure:
            values[name] = Text.joined((before_text, text)) if adds else text
        elif "--" in text.chars or "--" in before_text.chars:
            kept_text = before_text if adds else marked(before_text)
            values[name] = Text.joined((kept_text, Text.made(" ", word.spot), marked(text)))
        else:
            values[name] = self.variables.unknown(word.spot, f"${name} is set under a condition or in a loop")


def _inner(texts: list[Text], first: str) -> Text | None:
    """Return the script in the words of a command that does nothing but run it."""
    blank = Text(" ", (texts[0].spot,))
    if first == "eval" and len(texts) > 1:
        return Text.joined([item for text in texts[1:] for item in (blank, text)])
    if first in SHELLS and len(texts) > 2 and texts[1].chars in {"-c", "-lc"}:
        return texts[2]
    return None


def _assignment(word: Word) -> tuple[str, bool, Word] | None:
    """Return (name, whether it adds, the value) of ``NAME=value``; None if the word is none."""
    if not word.parts or word.parts[0].kind != "text" or word.parts[0].quoted:
        return None
    match = _ASSIGNED.match(word.parts[0].text.chars)
    if match is None:
        return None
    first = word.parts[0]
    rest = type(first)("text", first.text[match.end() :], quoted=False)
    return match[1], match[2] == "+", Word((rest, *word.parts[1:]), word.spot, word.items)


__all__ = ["MAYBE", "UNKNOWN", "Command", "Script", "follow"]
