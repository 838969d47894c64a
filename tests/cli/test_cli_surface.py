"""What users and scripts rely on: names of commands and options, and that help comes at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import planner
import transcripts
from planner.cli import app

SURFACE = Path(__file__).parent / "surface.txt"

SLOW = ("ortools", "numpy", "pandas", "pydantic", "yaml", "rich", "planner.pipeline", "planner.specs.cluster")
"""What --help does not need."""
SOLVER = ("ortools", "numpy", "pandas", "rich.console", "planner.pipeline")
"""What looking at a spec does not need."""


def surface(command: Any, name: str) -> Iterator[str]:
    """Return a line for each command with its arguments and options."""
    inner: dict[str, Any] = getattr(command, "commands", {})
    words = [
        "/".join([*parameter.opts, *parameter.secondary_opts])
        if parameter.param_type_name == "option"
        else str(parameter.name)
        for parameter in command.params
    ]
    yield " ".join([name, *words])
    for title in sorted(inner):
        yield from surface(inner[title], f"{name} {title}")


def test_commands_and_options_are_those_that_were_promised(update_golden: bool) -> None:
    """A command or an option that goes, comes or changes its name shows in surface.txt."""
    text = "\n".join(surface(typer.main.get_command(app), "planner")) + "\n"
    if update_golden:
        SURFACE.write_text(text, encoding="utf-8")
    assert text == SURFACE.read_text(encoding="utf-8")


def test_every_option_says_what_it_does() -> None:
    """No argument and no option is without help."""

    def bare(command: Any, name: str) -> Iterator[str]:
        for parameter in command.params:
            if not getattr(parameter, "help", None):
                yield f"{name} {parameter.name}"
        for title, inner in getattr(command, "commands", {}).items():
            yield from bare(inner, f"{name} {title}")

    assert list(bare(typer.main.get_command(app), "planner")) == []


def test_help_needs_nothing_slow() -> None:
    """Importing the command line imports no solver, no reader of specs and no renderer."""
    script = f"import sys, planner.cli; print(*[name for name in {SLOW!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=transcripts.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    "command", ["show cluster 8x8:h100-sxm-80gb", "show devices", "show model model_specs/gpt2.json"]
)
def test_show_needs_no_solver(command: str, tmp_path: Path) -> None:
    """Looking at a spec imports neither solver nor numpy nor rich."""
    script = (
        "import sys, planner.cli\n"
        f"try: planner.cli.app({command.split()!r})\n"
        "except SystemExit as end: assert not end.code\n"
        f"print(*[name for name in {SOLVER!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=transcripts.scratch(tmp_path),
        env=transcripts.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == ""


def test_the_version_is_one_line(tmp_path: Path) -> None:
    """--version prints name and version."""
    done = transcripts.run(f"{sys.executable} -m planner --version", transcripts.scratch(tmp_path))
    assert (done.code, done.stdout) == (0, f"planner {planner.__version__}\n")
