"""A step in characters."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner.domain.plan import Plan
from planner.report.gantt import gantt
from planner.report.span import segments
from planner.simulate import Event, Timeline
from report.steps import made


def rows(plan: Plan, found: Timeline, width: int) -> list[str]:
    """Return the cells of the lines of stages."""
    lines = [line for line in gantt(plan, found, width).text.splitlines() if re.match(r"stage \d", line)]
    return [line[8 : len(line) - 12 if "%" in line else None] for line in lines]


def test_a_step_by_hand() -> None:
    """Two stages, two micro-batches, f = 1 s, b = 2 s, sync 1 s: ten seconds in twenty columns, two for each second.

    Stage 0: F0, F1 until 2 s, idle until B0 at 4-6, idle, B1 at 7-9, exchange until 10. Stage 1: F0 from 1, B0 from 2,
    F1 at 4, B1 at 5-7, exchange until 8.
    """
    plan, found = made(2, 2)
    assert found.step_time == 10.0
    assert rows(plan, found, 20 + 8 + 12) == ["0011....aaaa..bbbb==", "..00aaaa11bbbb==...."]


def test_waiting_for_what_is_sent_is_shown() -> None:
    """A blocking transfer of a second after a forward pass of a second."""
    plan, found = made(2, 1, hop=1.0, blocking=True)
    assert found.step_time == 8.0 + 1.0
    first, second = rows(plan, found, 18 + 2 + 8 + 12)
    assert first.startswith("00>>")
    assert ">>" in second
    assert "> sends only" in gantt(plan, found).text


def test_a_line_for_each_chunk() -> None:
    """Each line has its own chunk's passes; all lines of a stage together have no cell twice."""
    plan, found = made(2, 4, chunks=2)
    lines = [line[10:88] for line in gantt(plan, found, 100).text.splitlines() if re.match(r"stage \d\.", line)]
    assert len(lines) == 4
    for pair in (lines[:2], lines[2:]):
        for cells in zip(*(line.ljust(78) for line in pair), strict=True):
            assert sum(cell.isalnum() for cell in cells) <= 1
            assert len({cell == "." for cell in cells}) == 1


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize(
    ("stages", "microbatches", "chunks"), [(1, 1, 1), (4, 8, 1), (8, 256, 1), (4, 64, 3), (60, 60, 1)]
)
def test_no_line_is_wider_than_the_page(stages: int, microbatches: int, chunks: int, width: int) -> None:
    """Whatever the plan; spans lie inside the lines of stages."""
    plan, found = made(stages, microbatches, chunks=chunks, hop=0.1)
    drawn = gantt(plan, found, width)
    assert max(map(len, drawn.text.splitlines())) <= width
    assert drawn.text.isascii()
    for start, end, _ in drawn.spans:
        assert "\n" not in drawn.text[start:end]
        assert end > start


def test_a_long_step_shows_its_ends() -> None:
    """Of 256 micro-batches the first and the last ones are told by name; the axis goes on behind the gap."""
    plan, found = made(4, 256)
    first, gap, last = segments(found, 80)
    assert gap.is_cut
    assert first.start == 0.0
    assert last.end == found.step_time
    assert first.cell == pytest.approx(last.cell)
    text = gantt(plan, found).text
    assert "~~" in text
    assert "not shown: the passes between repeat" in text
    assert segments(made(4, 4)[1], 80) == segments(made(4, 4)[1], 80)
    assert len(segments(made(4, 4)[1], 80)) == 1


def test_passes_too_short_to_be_told_apart() -> None:
    """Gpipe-like steps that cannot be cut have letters for forward and backward."""
    plan, found = made(16, 16)
    text = gantt(plan, found, 60).text
    assert "F forward; B backward" in text


def test_many_stages_are_counted() -> None:
    """Beyond 48 lines the rest is counted."""
    plan, found = made(60, 60)
    text = gantt(plan, found).text
    assert "... and 13 more lines" in text
    assert "stage 46" in text
    assert "stage 47" not in text


def test_halves_of_a_backward_pass_have_letters_of_their_own() -> None:
    """F, I and W of one micro-batch, a second each, on a stage that then idles for as long as all of them."""
    plan, found = made(1, 1)
    halves = [Event(0, "compute", kind, float(start), start + 1.0, 0, 0) for start, kind in enumerate("FIW")]
    found = replace(found, events=tuple(halves), step_time=6.0)
    assert rows(plan, found, 24 + 8 + 12) == ["0000aaaakkkk............"]
    assert "k-t backward (weights) of micro-batch" in gantt(plan, found).text


def test_a_step_that_runs_into_the_next_one_says_so() -> None:
    """Ten seconds by itself, eight of which it adds to a run; others have no note."""
    plan, found = made(2, 2)
    assert "note" not in gantt(plan, found).text
    stale = replace(plan, schedule="pipedream-2bw")
    text = " ".join(gantt(stale, replace(found, adds=8.0)).text.split())
    assert "note pipedream-2bw begins a step before the last one has ended: a step adds 8.00 s to a run, and" in text
    assert "takes 10.0 s by itself, as it is drawn here" in text
