"""Launchers write what they wrote before, scripts that bash can read, and refuse what they cannot start."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import transcripts
from export import launches
from planner.errors import CannotExpress
from planner.export import LAUNCHERS, Launcher

GOLDEN = Path(__file__).parent / "golden"
CANNOT = {("jobset", "boxes"), *((name, plan) for name in ("trainjob", "skypilot") for plan in ("unlike", "boxes"))}
"""(launcher, plan) that is refused."""
CASES = [pytest.param(one, name, id=f"{one.name}-{name}") for one in LAUNCHERS for name in launches.files()]


@pytest.mark.parametrize(("launcher", "name"), CASES)
def test_a_launch_is_written_as_before(launcher: Launcher, name: str, update_golden: bool) -> None:
    """Of each plan; what is refused is refused with the reason in the file."""
    path = GOLDEN / f"{launcher.name}-{name}.txt"
    try:
        got = launches.text(launcher, name)
    except CannotExpress as refused:
        got = "".join(f"refused: {reason}\n" for reason in refused.reasons)
    if update_golden:
        transcripts.rewrite(path, got)
    assert path.exists(), f"{path} is missing: --update-golden writes it"
    assert got == path.read_text(encoding="utf-8")
    assert got.startswith("refused: ") == ((launcher.name, name) in CANNOT)


@pytest.mark.parametrize(("launcher", "name"), CASES)
def test_bash_reads_every_script(launcher: Launcher, name: str) -> None:
    """Whole, without running it; and shellcheck, where there is one, finds nothing but quotes meant as they are."""
    if (launcher.name, name) in CANNOT:
        return
    scripts = [part.text for part in launcher.parts(launches.launch(name)) if part.text.startswith("#!")]
    for script in scripts:
        judged = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (judged.returncode, judged.stderr) == (0, "")
        if shutil.which("shellcheck"):
            judged = subprocess.run(
                ["shellcheck", "--exclude=SC2016", "-"], input=script, capture_output=True, text=True, check=False
            )
            assert judged.stdout == ""
