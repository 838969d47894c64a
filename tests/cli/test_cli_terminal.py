"""What somebody sees who sits before a terminal: the real command line on a pseudo-terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import transcripts
from planner.cli.progress import ERASE
from planner.cli.watch import CLEAR
from planner.specs.plan import parsed_plan
from terminals import terminal

pytest.importorskip("pty", reason="there are pseudo-terminals on POSIX systems only")

PLAN = [sys.executable, "-m", "planner", "plan"]
SMALL = [*PLAN, "1x4:h100-sxm-80gb+1x4:a100-sxm-80gb", "model_specs/gpt2.json", "--global-batch", "16"]
LONG = "cluster_specs/mixed-h100-a100-l40s.yaml"
"""A cluster on which the search for 405B with `--gap 0` takes many seconds."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that looks like the repository, with a cluster.yaml to be edited."""
    directory = transcripts.scratch(tmp_path)
    devices(directory, 4)
    return directory


def devices(folder: Path, number: int) -> None:
    """Write a cluster of one node with so many devices, beside and then in its place, as many editors do."""
    text = f"groups:\n  - {{device: h100-sxm-80gb, nodes: 1, devices_per_node: {number}}}\n"
    (folder / ".cluster.yaml.swp").write_text(text, encoding="utf-8")
    (folder / ".cluster.yaml.swp").replace(folder / "cluster.yaml")


def test_progress_is_shown_phase_by_phase_and_taken_away(folder: Path) -> None:
    """Every phase has its line, written over the last; the results, here in a file, know nothing of it."""
    with (folder / "out.txt").open("wb") as out, terminal([*SMALL, "--time-limit", "1000"], folder, out) as shown:
        code, text = shown.end()
    assert code == 0
    first, *lines, last = text.split(ERASE)
    assert (first, last) == ("", "")
    phases = list(dict.fromkeys(re.sub(r"^\d+:\d\d( \(limit in \d+:\d\d\))? ([^:]*).*", r"\2", line) for line in lines))
    own = [phase for phase in phases if not phase.startswith("references, ")]
    assert own == ["reading", "candidates", "first plans", "equal replicas", "unlike replicas", "replay"]
    alone = [f"references, {name} alone, equal replicas" for name in ("h100-sxm-80gb", "a100-sxm-80gb")]
    assert [phase for phase in phases if phase in alone] == alone
    searched = [line for line in lines if " equal replicas: " in line]
    figures = r"[\d,]+ subproblems? to go, gap [\d.]+% \(wanted 1%\), best [\d.]+ m?s"
    assert re.fullmatch(rf"0:\d\d \(limit in 16:\d\d\) equal replicas: {figures}", searched[0])
    results = (folder / "out.txt").read_text(encoding="utf-8")
    assert results.startswith("cluster  ")
    assert "\x1b" not in results


def test_a_watch_shows_one_plan_at_a_time(folder: Path) -> None:
    """A change clears the screen, says what changed, plans, and says how the plan moved; Ctrl-C ends with 130."""
    command = [*PLAN, "cluster.yaml", "model_specs/gpt2.json", "--global-batch", "16", "--watch", "-o", "plan.yaml"]
    waiting = "planner: watching model_specs/gpt2.json, cluster.yaml; Ctrl-C ends it\r\n"
    with terminal(command, folder) as shown:
        assert CLEAR not in shown.until(waiting)
        devices(folder, 2)
        again = shown.until(waiting)
        (folder / "cluster.yaml").write_text("groups: [\n", encoding="utf-8")
        broken = shown.until(waiting)
        shown.interrupt()
        code, end = shown.end()
    assert again.startswith(f"{CLEAR}{ERASE}planner: cluster.yaml changed\r\n")
    assert "cluster  cluster, 2 devices" in again
    assert re.search(r"planner: step time [\d.]+ ms -> [\d.]+ ms \(\+[\d.]+%\); devices 4 x", again)
    assert broken.startswith(f"{CLEAR}{ERASE}planner: cluster.yaml changed\r\n")
    assert "planner: cluster.yaml:1: is not valid YAML" in broken
    assert "planner: plan.yaml is left as it was" in broken
    assert (code, end) == (130, f"{ERASE}planner: interrupted\r\n")
    text = (folder / "plan.yaml").read_text(encoding="utf-8")
    assert parsed_plan(text, "plan.yaml").plan.num_devices == 2


def test_a_search_under_way_is_given_up(folder: Path) -> None:
    """When a file changes again its plan is of no interest: it is never shown, that of the new file is."""
    (folder / "job.yaml").write_text("gap: 0\n", encoding="utf-8")
    command = [*PLAN, LONG, "model_specs/llama-3-405b.json", "--job", "job.yaml", "--no-references", "--watch"]
    with terminal(command, folder) as shown:
        shown.until("equal replicas")
        (folder / "job.yaml").write_text("gap: 0.5\nglobal_batch: 512\n", encoding="utf-8")
        given_up = shown.until("planner: job.yaml changed\r\n")
        then = shown.until("Ctrl-C ends it\r\n")
        shown.interrupt()
        code, _ = shown.end()
    assert "cluster  " not in given_up
    assert "job      512 x 4,096* tokens" in then
    assert code == 130


def test_an_interrupt_reaches_a_search_under_way(folder: Path) -> None:
    """Ctrl-C shows the best plan so far and ends the watch, though a search was at work."""
    command = [*PLAN, LONG, "model_specs/llama-3-405b.json", "--gap", "0", "--no-references", "--watch"]
    with terminal(command, folder) as shown:
        shown.until("equal replicas")
        shown.interrupt()
        code, end = shown.end()
    assert code == 130
    assert "cluster  mixed-h100-a100-l40s" in end
    assert end.endswith("planner: interrupted, this is the best plan so far\r\n")
