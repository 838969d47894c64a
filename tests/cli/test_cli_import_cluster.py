"""``planner import cluster``: files, standard input, the tools of this machine, and what it writes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cli.stub_pipeline import Planner
from machines.dumps import dump

DATA = "tests/machines/data"


def tool(folder: Path, name: str, script: str) -> None:
    """Put an executable into a folder."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of PATH but for what a shell needs."""
    folder = tmp_path / "binaries"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_the_file_is_one_that_the_planner_reads(run: Planner) -> None:
    """What is written can be shown; notes go to standard error alone."""
    done = run("import", "cluster", f"{DATA}/slurm_nodes.txt", f"{DATA}/slurm_topology.txt", "-o", "site.yaml")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.count("note: ") == len(done.stderr.splitlines())
    shown = run("show", "cluster", "site.yaml")
    assert shown.exit_code == 0
    assert "160 devices" in shown.stdout


def test_standard_input_is_a_dump(run: Planner) -> None:
    """A list that is piped in."""
    done = run("import", "cluster", "-", stdin=dump("kubectl_nodes.json"))
    assert done.exit_code == 0
    assert "mi300x-192gb" in done.stdout
    assert "SECRET" not in done.output


def test_the_tools_of_this_machine_are_asked(run: Planner, binaries: Path) -> None:
    """nvidia-smi is run twice with fixed arguments."""
    data = Path(__file__).parent.parent / "machines" / "data"
    script = f'case "$*" in "topo -m") cat {data}/nvidia_topo_h100.txt;; "-q -x") cat {data}/nvidia_smi_h100.xml;; esac'
    tool(binaries, "nvidia-smi", script)
    done = run("import", "cluster", "--local", "--nodes", "2", "--network", "8x400")
    assert done.exit_code == 0
    assert "h100-sxm-80gb" in done.stdout
    assert "nodes: 2" in done.stdout


def test_a_machine_without_tools_is_told_so(run: Planner, binaries: Path) -> None:
    """The tools that were looked for are named."""
    done = run("import", "cluster", "--local")
    assert done.exit_code == 2
    assert done.stderr == (
        "planner: --local: this machine has none of nvidia-smi, amd-smi, rocm-smi; run it on one with devices, or name "
        "files with their output\n"
    )


def test_a_tool_that_fails_is_told(run: Planner, binaries: Path) -> None:
    """Its code, and to run it by itself."""
    tool(binaries, "nvidia-smi", "exit 9")
    done = run("import", "cluster", "--local")
    assert done.exit_code == 2
    assert done.stderr == "planner: --local: `nvidia-smi topo -m` failed with code 9; run it by itself to see why\n"


def test_something_must_be_named(run: Planner) -> None:
    """Neither a dump nor --local, and missing files, all of them."""
    assert "name one dump or more, or give --local" in run("import", "cluster").stderr
    done = run("import", "cluster", "no-1.txt", "no-2.txt")
    assert done.exit_code == 2
    assert done.stderr.count("no such file") == 2
