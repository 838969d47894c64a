"""Lines of shell that launchers share: the program, its environment, and what differs from node to node."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from planner.export.base import Program
from planner.export.machines import Run, in_comment

WIDTH = 100
"""Columns that a list of words may take."""


def torchrun(program: Program, options: Sequence[str], folder: str) -> list[str]:
    """Return the lines that become torchrun, which starts the program and its user's arguments.

    The rendezvous is static, for the others count nodes by their addresses (torch 2.13, c10d: nodes are sorted).

    Args:
        program: what every process runs.
        options: where this node stands among the nodes, as shell text.
        folder: shell text of the folder with the files of the program.
    """
    words = ["exec torchrun", "--rdzv-backend static", *options, *_by_option(program_words(program, folder)), '"$@"']
    return [f"{'    ' if index else ''}{word} \\" for index, word in enumerate(words[:-1])] + [f"    {words[-1]}"]


def program_words(program: Program, folder: str) -> list[str]:
    """Return the command of a program as shell text, word by word, its files being those in `folder`, shell text."""
    mark = "\0"
    words = (word.split(mark) for word in with_files(program, mark))
    return [folder.join(quoted(piece) if piece else "" for piece in pieces) or "''" for pieces in words]


def with_files(program: Program, folder: str) -> list[str]:
    """Return the command of a program word by word; words that are a file of it, or end in =FILE, say `folder`, too."""
    names = {part.name for part in program.parts}
    found = []
    for word in program.command:
        option, equals, value = word.rpartition("=")
        found.append(f"{option}{equals}{folder}/{value}" if value in names else word)
    return found


def exports(environment: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each variable."""
    return [f"export {name}={quoted(value)}" for name, value in environment]


def module_path(program: Program, folder: str) -> list[str]:
    """Return the line by which Python finds the modules among the files of a program, if it has any."""
    if not any(part.name.endswith(".py") for part in program.parts):
        return []
    return [f'export PYTHONPATH={folder}"${{PYTHONPATH:+:$PYTHONPATH}}"']


def each_node(runs: Sequence[Run]) -> list[str]:
    """Return lines that set what depends on the node, NPROC and the devices that are seen, by NODE_RANK."""
    own = [[*_check(run), f"NPROC={run.processes}", *exports(run.environment)] for run in runs]
    if all(lines == own[0] for lines in own):
        return own[0]
    found = []
    for index, (run, lines) in enumerate(zip(runs, own, strict=True)):
        word = "elif" if index else "if"
        test = f'{word} [ "$NODE_RANK" -lt {run.first + len(run.nodes)} ]; then' if index < len(runs) - 1 else "else"
        found += [f"{test} # {described(run)}", *(f"    {line}" for line in lines)]
    return [*found, "fi"]


def _check(run: Run) -> list[str]:
    """Return what to make sure of where a node has several kinds of devices."""
    if not run.is_mixed:
        return []
    kinds = ", ".join(f"{group.devices_per_node} of {group.device.name}" for group in run.groups)
    return [f"# The devices in the order of their bus addresses (nvidia-smi -L) must be {in_comment(kinds)}."]


def unlike_workers(runs: Sequence[Run]) -> list[str]:
    """Return the line without which torchrun might take all nodes for equally large, where they are not."""
    return ["unset TORCH_ELASTIC_WORKER_IDENTICAL"] if len({run.processes for run in runs}) > 1 else []


def described(run: Run) -> str:
    """Return which nodes a run has, and what it uses of them."""
    first, last = run.nodes[0], run.nodes[-1]
    nodes = first.name if first is last else f"{first.name} to {last.name}"
    used = f"devices {','.join(map(str, run.visible))} of" if run.visible else f"{run.processes} of"
    devices = ", ".join(dict.fromkeys(group.device.name for group in run.groups))
    return in_comment(f"{nodes}, {used} {devices}")


def wrapped(words: Iterable[str], indent: str) -> Iterator[str]:
    """Yield lines of words."""
    line = ""
    for word in words:
        if line and len(indent) + len(line) + 1 + len(word) > WIDTH:
            yield indent + line
            line = ""
        line += f" {word}" if line else word
    if line:
        yield indent + line


def quoted(word: str) -> str:
    """Return a word as shell text."""
    return shlex.quote(word)


def _by_option(words: Iterable[str]) -> Iterator[str]:
    """Yield the words such that an option and its values go together."""
    held = ""
    for word in words:
        if held and word.startswith("-"):
            yield held
            held = ""
        held += f" {word}" if held else word
    if held:
        yield held
