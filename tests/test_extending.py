"""docs/extending.md tells the truth: a new member is one file and one row, and the planner uses it at once."""

from __future__ import annotations

import filecmp
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import blocks
import transcripts

PAGE = transcripts.ROOT / "docs" / "extending.md"
FIGURES = "--format json"
"""What is added to a command of the page, so that its answer can be judged."""


@dataclass(frozen=True)
class Example:
    """A section of the page: what it writes, and the commands that show it at work."""

    title: str
    changes: tuple[blocks.Block, ...]
    commands: tuple[str, ...]


def examples() -> list[Example]:
    """Return the sections of the page that have commands."""
    text = PAGE.read_text(encoding="utf-8")
    titles = [(text.count("\n", 0, match.start()) + 1, match[1]) for match in re.finditer(r"(?m)^## (.*)$", text)]
    found = []
    for (line, title), (end, _) in zip(titles, [*titles[1:], (10**9, "")], strict=True):
        inside = [block for block in blocks.read(PAGE) if line < block.line < end]
        commands = [command for block in inside if block.words == ("shell",) for command in block.body.splitlines()]
        changes = [block for block in inside if len(block.words) == 2 and "." in block.words[1]]
        if commands:
            found.append(Example(title, tuple(changes), tuple(commands)))
    return found


def apply(block: blocks.Block, folder: Path) -> None:
    """Write the file of a block, or change the file that a diff names."""
    language, path = block.words
    target = folder / path
    if language != "diff":
        assert not target.exists(), f"{block}: {path} exists already"
        target.write_text(block.body, encoding="utf-8")
        return
    lines = block.body.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = target.read_text(encoding="utf-8")
    if not before:
        target.write_text(text + after, encoding="utf-8")
        return
    assert text.count(before) == 1, f"{block}: {path} does not hold what the diff shows"
    target.write_text(text.replace(before, after), encoding="utf-8")


def differing(first: Path, second: Path) -> set[str]:
    """Return the paths that are not the same in two folders, compiled files left out."""
    names = {path.relative_to(root) for root in (first, second) for path in root.rglob("*") if path.is_file()}
    kept = {name for name in names if "__pycache__" not in name.parts}
    both = {name for name in kept if (first / name).exists() and (second / name).exists()}
    return {str(name) for name in kept - {n for n in both if filecmp.cmp(first / n, second / n, shallow=False)}}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package, and links to the rest of the repository."""
    shutil.copytree(transcripts.ROOT / "planner", tmp_path / "planner", ignore=shutil.ignore_patterns("__pycache__"))
    return transcripts.scratch(tmp_path)


def run(command: str, folder: Path) -> transcripts.Run:
    """Run a command of the page on the package in `folder`."""
    changed = re.sub(r"^planner ", f"{sys.executable} -m planner ", command)
    return transcripts.run(f"{changed} {FIGURES}", folder)


def answer(command: str, folder: Path) -> dict[str, Any]:
    """Return the JSON of a command of the page that ends well."""
    done = run(command, folder)
    assert done.code == 0, f"{command}: exit {done.code}\n{done.stdout}{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def uses_schedule(document: dict[str, Any]) -> bool:
    return bool(document["plan"]["plan"]["schedule"] == "eager-1f1b" and len(document["plan"]["plan"]["stages"]) == 4)


def uses_axis(document: dict[str, Any]) -> bool:
    stages = document["plan"]["plan"]["stages"]
    return all({"axis": "up", "degree": 2} in stage["degrees"] for stage in stages)


def uses_device(document: dict[str, Any]) -> bool:
    return bool(document["plan"]["cluster"]["groups"][0]["name"] == "example-96gb")


def uses_family(document: dict[str, Any]) -> bool:
    """2 x 128,005 x 2,560 + 36 (2,560 x 3,584 + 2,560^2 + 2 x 2,560 x 18,432 + 2 x 2,560) + 2,560."""
    if "plan" in document:
        return bool(document["plan"]["model"]["family"] == "arcee")
    return bool(document["parameters"] == 4_619_189_760)


JUDGES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "A device in the catalogue": uses_device,
    "A schedule": uses_schedule,
    "An axis": uses_axis,
    "A model family": uses_family,
}
"""Title of a section -> whether an answer shows that the new member is in use."""


def test_every_example_is_judged() -> None:
    """No section of the page has commands that nothing looks at."""
    assert [example.title for example in examples()] == list(JUDGES)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_a_member_is_one_file_and_one_row(example: Example, copy: Path) -> None:
    """The commands of a section show the new member after its changes, not before, and no other file changed."""
    before = run(example.commands[0], copy)
    assert before.code in {0, 2, 3}, f"{example.commands[0]}: exit {before.code}\n{before.stderr}"
    assert before.code or not JUDGES[example.title](json.loads(before.stdout)), "the member was there before"
    for block in example.changes:
        apply(block, copy)
    for command in example.commands:
        assert JUDGES[example.title](answer(command, copy)), f"{command} does not show the new member"
    changed = {f"planner/{name}" for name in differing(transcripts.ROOT / "planner", copy / "planner")}
    assert changed == {path for block in example.changes if (path := block.words[1]).startswith("planner/")}
    assert len(changed) <= 2


def test_generic_tests_take_a_new_schedule(copy: Path) -> None:
    """The tests of all schedules pass with the new one listed: its order is complete and holds what it says."""
    for block in next(example for example in examples() if example.title == "A schedule").changes:
        apply(block, copy)
    pytest_command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "tests/schedules"]
    done = subprocess.run(
        pytest_command, cwd=copy, env=transcripts.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "test_order_is_complete[eager-1f1b] PASSED" in done.stdout
