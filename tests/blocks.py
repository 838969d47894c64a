"""The fenced blocks of the README and the documentation: found, run, compared and rewritten.

A block ``console`` holds commands (``$ planner ...``) and what they print; ``...`` as the last line of an output
stands for the rest. The blocks of a page run in order in one scratch folder, so that one may use the files of another.
A command that fails must be followed by ``$ echo $?``. ``console no-run`` is for what no test can run. ``yaml cluster``
and its like are specs, read by the planner's own reader.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import transcripts

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL
)

ALLOWED = frozenset({"planner", "python", "cat", "head", "tail", "grep", "diff", "echo"})
"""What a block may run."""

ELLIPSIS = "..."
"""As the last line of an output: the rest is not shown."""


@dataclass(frozen=True)
class Step:
    """A command of a block and the output that the page shows for it."""

    command: str
    shown: str


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    """[-] line of the opening fence, from 1"""
    words: tuple[str, ...]
    """what stands behind the opening fence"""
    body: str
    """the text inside, without the indent of the fence"""
    start: int
    end: int
    """[characters] where the body lies in the page"""
    indent: str

    def __str__(self) -> str:
        """Return the place of the block."""
        return f"{self.page.relative_to(transcripts.ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return the pages whose blocks are run."""
    return [transcripts.ROOT / "README.md", *sorted((transcripts.ROOT / "docs").rglob("*.md"))]


def read(page: Path) -> list[Block]:
    """Return the blocks of `page`, in order."""
    return list(_read(page, page.read_text(encoding="utf-8")))


def _read(page: Path, text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page, line, tuple(match["info"].split()), body, match.start("body"), match.end("body"), indent)


def steps(block: Block) -> list[Step]:
    """Return the commands of a console block; a line that ends in a backslash goes on in the next.

    Raises:
        ValueError: the block does not start with a command.
    """
    found: list[Step] = []
    lines = iter(block.body.splitlines(keepends=True))
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\\n"):
                command += next(lines, "")
            found.append(Step(command.rstrip("\n"), ""))
        elif found:
            found[-1] = Step(found[-1].command, found[-1].shown + line)
        else:
            message = f"{block}: a console block starts with a command, as in '$ planner --help'"
            raise ValueError(message)
    return found


def refused(command: str) -> list[str]:
    """Return the programs in `command` that a block may not run."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    first, programs = True, []
    for token in lexer:
        if first:
            programs.append(token)
        first = bool(token) and set(token) <= set("|&;(")
    return [program for program in programs if program not in ALLOWED]


def agrees(shown: str, got: str) -> bool:
    """Whether the output `got` is the one that a page shows, up to its ellipsis."""
    expected, actual = transcripts.steady(shown).splitlines(), transcripts.steady(got).splitlines()
    if expected and expected[-1] == ELLIPSIS:
        return actual[: len(expected) - 1] == expected[:-1] and len(actual) >= len(expected)
    return actual == expected


def shorten(shown: str, got: str) -> str:
    """Return the output `got` cut off where the page cuts it off."""
    lines = shown.splitlines()
    if got and not got.endswith("\n"):
        got += "\n"
    if not lines or lines[-1] != ELLIPSIS:
        return got
    return "".join(got.splitlines(keepends=True)[: max(len(lines) - 1, 1)]) + ELLIPSIS + "\n"


@dataclass(frozen=True)
class Outcome:
    """What the blocks of a page did."""

    problems: tuple[str, ...]
    """one text for every output that is not as shown"""
    text: str
    """the page with the outputs as they are"""


def play(page: Path, directory: Path) -> Outcome:
    """Run the console blocks of `page` in `directory`, in order."""
    text = page.read_text(encoding="utf-8")
    problems: list[str] = []
    parts: list[str] = []
    done = 0
    for block in _read(page, text):
        if block.words[:1] != ("console",) or "no-run" in block.words:
            continue
        found, body = _play(block, directory)
        problems += found
        parts += [
            text[done : block.start],
            *(block.indent + line if line.strip() else line for line in body.splitlines(keepends=True)),
        ]
        done = block.end
    return Outcome(tuple(problems), "".join([*parts, text[done:]]))


def _play(block: Block, directory: Path) -> tuple[list[str], str]:
    problems: list[str] = []
    body = ""
    code = 0
    following = [step.command for step in steps(block)[1:]] + [""]
    for step, after in zip(steps(block), following, strict=True):
        programs = refused(step.command)
        if programs:
            problems.append(
                f"{block}: a block may not run {', '.join(programs)}; it may run {', '.join(sorted(ALLOWED))}"
            )
            body += f"$ {step.command}\n{step.shown}"
            continue
        done = transcripts.run(step.command, directory, last_code=code, merged=True)
        code = done.code
        if code and after != "echo $?":
            problems.append(
                f"{block}: '{step.command}' ends with exit code {code}; show it by '$ echo $?'\n{done.stdout}"
            )
        same = agrees(step.shown, done.stdout)
        if not same:
            problems.append(f"{block}: $ {step.command}\n--- shown\n{step.shown}--- printed\n{done.stdout}")
        body += f"$ {step.command}\n{step.shown if same else shorten(step.shown, done.stdout)}"
    return problems, body
