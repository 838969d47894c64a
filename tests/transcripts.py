"""Runs the real command line as a user would, and keeps what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

TIME_LIMIT = 300
"""[s] a command that takes longer hangs."""

NOT_SHOWN = frozenset({"build", "dist"})
"""What a scratch folder does not show of the repository, beside hidden files."""

VOLATILE: tuple[tuple[str, str], ...] = (
    # how long the search took, as text: "search: 1.2 s", "searched 14 subproblems in 0.8 s"
    (r"(?m)^(\W*search.*?)\b\d+(\.\d+)?(?= m?s\b)", r"\1#"),
    # the same in the JSON that `planner plan --format json` prints
    (r'("seconds": )\d+(\.\d+)?(e-?\d+)?', r"\1#"),
    # the version in the provenance of a plan file
    (r'(version"?: "?planner )\d+\.\d+\.\d+', r"\1#"),
)
"""Regular expression and replacement of the few things that differ from run to run. Keep it short: a number that moves
without a reason is a bug."""


@dataclass(frozen=True)
class Run:
    """What a command did."""

    code: int
    stdout: str
    stderr: str


def steady(text: str) -> str:
    """Return `text` without what differs from run to run, and without blanks at line ends."""
    for pattern, replacement in VOLATILE:
        text = re.sub(pattern, replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def scratch(directory: Path) -> Path:
    """Return `directory` made to look like the repository, so that what a command writes stays out of the real one."""
    for entry in ROOT.iterdir():
        link = directory / entry.name
        if not entry.name.startswith(".") and entry.name not in NOT_SHOWN and not link.exists():
            link.symlink_to(entry, target_is_directory=entry.is_dir())
    return directory


def environment() -> dict[str, str]:
    """Return the environment of a reader with a plain terminal of 100 columns."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "FORCE_"))}
    binaries = Path(sys.executable).parent
    return kept | {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def run(command: str, directory: Path, *, last_code: int = 0, merged: bool = False) -> Run:
    """Run `command` in bash, where ``$?`` is `last_code` and nothing is typed; `merged` mixes stderr into stdout."""
    done = subprocess.run(
        ["bash", "-c", f"(exit {last_code}); {command}"],
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        encoding="utf-8",
        timeout=TIME_LIMIT,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr or "")


def transcript(command: str, directory: Path) -> str:
    """Return the command, its exit code, its stdout and its stderr as one text."""
    done = run(command, directory)
    stdout = done.stdout.replace(str(directory), "DIRECTORY")
    stderr = done.stderr.replace(str(directory), "DIRECTORY")
    return f"$ {command}\nexit: {done.code}\n--- stdout\n{stdout}--- stderr\n{stderr}"


def rewrite(path: Path, text: str) -> None:
    """Write `text` to `path`, unless the difference is only in what differs from run to run."""
    if path.exists() and steady(path.read_text(encoding="utf-8")) == steady(text):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
