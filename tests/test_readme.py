"""The README and the documentation tell the truth: their commands print what they show, their specs are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blocks
import transcripts

NO_RUN_MAX = 4
"""[-] blocks that no test runs: how to get the planner, and make's commands."""

READERS = {
    "cluster": "planner show cluster {file}",
    "model": "planner show model {file}",
    "plan": "planner check {file}",
    "job": "planner plan 1x8:h100-sxm-80gb model_specs/llama-3-8b.json --no-references --job {file}",
}
"""The word behind ``yaml`` or ``json``, and the command that reads such a file and must end well."""

PAGES = blocks.pages()
SPECS = [
    block
    for page in PAGES
    for block in blocks.read(page)
    if block.words[:1] in {("yaml",), ("json",)} and len(block.words) > 1
]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")


def name(page: Path) -> str:
    return str(page.relative_to(transcripts.ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_console_blocks_print_what_they_show(page: Path, tmp_path: Path, update_golden: bool) -> None:
    """Every command of a page prints what the page shows."""
    outcome = blocks.play(page, transcripts.scratch(tmp_path))
    if update_golden and outcome.text != page.read_text(encoding="utf-8"):
        page.write_text(outcome.text, encoding="utf-8")
    elif not update_golden:
        assert not outcome.problems, "\n\n".join(outcome.problems)


@pytest.mark.parametrize("block", SPECS, ids=str)
def test_specs_in_the_documentation_are_read(block: blocks.Block, tmp_path: Path) -> None:
    """Every spec that a page shows is one that the planner reads."""
    language, kind = block.words[:2]
    assert kind in READERS, f"{block}: '{kind}' is none of {', '.join(READERS)}"
    (tmp_path / f"block.{language}").write_text(block.body, encoding="utf-8")
    done = transcripts.run(READERS[kind].format(file=f"block.{language}"), transcripts.scratch(tmp_path))
    assert done.code == 0, f"{block}: {done.stdout}{done.stderr}"


def test_few_blocks_are_not_run() -> None:
    """Only how to get the planner and make's commands are shown without being run."""
    unrun = [str(block) for page in PAGES for block in blocks.read(page) if "no-run" in block.words]
    assert len(unrun) <= NO_RUN_MAX, f"{len(unrun)} blocks are not run, {NO_RUN_MAX} may be: {', '.join(unrun)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page: Path) -> None:
    """Every link of a page to a file of the repository leads somewhere."""
    broken = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert not broken, f"{name(page)}: {', '.join(broken)} not found"


def page_of(directory: Path, text: str) -> Path:
    page = directory / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.fixture
def anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a scratch folder that takes the place of the repository."""
    monkeypatch.setattr(transcripts, "ROOT", tmp_path)
    return tmp_path


def test_a_wrong_output_is_found_and_rewritten(anywhere: Path) -> None:
    """A page that shows another output than the command prints is a problem; the rewritten page is none."""
    page = page_of(anywhere, "Text.\n\n  ```console\n  $ echo one\n  two\n  $ echo three\n  three\n  ```\n\nMore.\n")
    outcome = blocks.play(page, anywhere)
    assert len(outcome.problems) == 1
    assert "$ echo one" in outcome.problems[0]
    page.write_text(outcome.text, encoding="utf-8")
    assert outcome.text == "Text.\n\n  ```console\n  $ echo one\n  one\n  $ echo three\n  three\n  ```\n\nMore.\n"
    assert blocks.play(page, anywhere).problems == ()


def test_an_ellipsis_hides_the_rest(anywhere: Path) -> None:
    """The lines before the ellipsis must agree, and something must follow."""
    command = "python -c 'print(1); print(2); print(3)'"
    assert not blocks.play(page_of(anywhere, f"```console\n$ {command}\n1\n...\n```\n"), anywhere).problems
    assert blocks.play(page_of(anywhere, f"```console\n$ {command}\n2\n...\n```\n"), anywhere).problems
    assert blocks.play(page_of(anywhere, f"```console\n$ {command}\n1\n2\n3\n...\n```\n"), anywhere).problems


def test_a_failure_must_be_shown(anywhere: Path) -> None:
    """A command that fails is a problem unless the page shows its exit code."""
    failing = "python -c 'raise SystemExit(3)'"
    assert blocks.play(page_of(anywhere, f"```console\n$ {failing}\n```\n"), anywhere).problems
    assert not blocks.play(page_of(anywhere, f"```console\n$ {failing}\n$ echo $?\n3\n```\n"), anywhere).problems


def test_only_known_programs_are_run(anywhere: Path) -> None:
    """A block may run the planner, python and a few readers of text, alone or in a pipe."""
    assert blocks.refused("planner plan a b -o - | python -m json.tool && cat x") == []
    assert blocks.refused("planner plan a \\\n  b; rm x | sudo y") == ["rm", "sudo"]
    assert blocks.play(page_of(anywhere, "```console\n$ touch made\n```\n"), anywhere).problems
    assert not (anywhere / "made").exists()


def test_only_the_search_time_is_volatile() -> None:
    """The time of a search may differ from run to run, a predicted time may not."""
    assert transcripts.steady("search: 1.2 s, 14 subproblems") == transcripts.steady("search: 10.75 s, 14 subproblems")
    assert transcripts.steady('"seconds": 1.25,') == transcripts.steady('"seconds": 3e-05,')
    assert transcripts.steady("step: 1.2 s") != transcripts.steady("step: 1.3 s")


def test_golden_transcript_keeps_code_and_both_streams(anywhere: Path) -> None:
    """A transcript has the exit code, what went to stdout and what went to stderr."""
    command = "python -c 'import sys; print(1); print(2, file=sys.stderr); sys.exit(4)'"
    assert transcripts.transcript(command, anywhere) == f"$ {command}\nexit: 4\n--- stdout\n1\n--- stderr\n2\n"
