"""A step at a glance: true to the time, and no wider than the page."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from planner.domain.plan import Plan
from planner.report.cells import sampled
from planner.report.looks import Look
from planner.report.strip import MEMORY_TITLE, MOST, strip_lines
from planner.report.terminal import write
from planner.simulate import Timeline
from planner.units import GIB
from report.steps import filled, made

BESIDE = len("  stage 0  ") + len("   90.0%  ██████████ 1.0 of 5.0 GiB")
"""[columns] of a line beside the strip, of fewer than ten stages that all fit."""
F: Look = ("F", "")
B: Look = ("B", "")
REST: Look = (".", "")


def strips(plan: Plan, found: Timeline, width: int = 100) -> dict[int, str]:
    """Return stage -> strip."""
    lines = "\n".join(strip_lines(plan, filled(plan), found, width))
    return {int(stage): strip for stage, strip in re.findall(r"(?m)^  stage (\d+) *  (\S+)  ", lines)}


def test_four_stages_by_hand() -> None:
    """1F1B, four micro-batches, f = 1 s, b = 2 s, exchange 1 s: 22 s in 44 columns; a stage works 12 s, 54.5%.

    The last stage: F0 3-4, B0 4-6, F1 6-7, B1 7-9, F2 9-10, B2 10-12, F3 12-13, B3 13-15, exchange. The third: F0 2-3,
    F1 3-4, B0 6-8, F2 8-9, B1 9-11, F3 11-12, B2 12-14, B3 15-17. The second: F0 to F2 1-4, B0 8-10, F3 10-11,
    B1 11-13, B2 14-16, B3 17-19. The first: F0 to F3 0-4, B0 10-12, B1 13-15, B2 16-18, B3 19-21.
    """
    plan, found = made(4, 4)
    assert strip_lines(plan, filled(plan), found, 44 + BESIDE) == [
        "",
        "a step, stage by stage                                     busy  memory",
        "  stage 0  FFFFFFFF............BBBB..BBBB..BBBB..BBBB==   54.5%  ██░░░░░░░░ 1.0 of 5.0 GiB",
        "  stage 1  ..FFFFFF........BBBBFFBBBB..BBBB..BBBB==....   54.5%  ████░░░░░░ 2.0 of 5.0 GiB",
        "  stage 2  ....FFFF....BBBBFFBBBBFFBBBB..BBBB==........   54.5%  ██████░░░░ 3.0 of 5.0 GiB",
        "  stage 3  ......FFBBBBFFBBBBFFBBBBFFBBBB==............   54.5%  ████████░░ 4.0 of 5.0 GiB",
        "  F forward, B backward, = gradient exchange, . idle; a column is 500 ms",
    ]


def test_gpipe_by_hand() -> None:
    """Two stages, three micro-batches: all forward, then all backward; 13 s in as many columns.

    The second: F0 to F2 1-4, B0 to B2 4-10. The first: F0 to F2 0-3, B0 6-8, B1 8-10, B2 10-12.
    """
    plan, found = made(2, 3, schedule="gpipe")
    assert strips(plan, found, 13 * 2 + BESIDE) == {
        0: "FFFFFF......BBBBBBBBBBBB==",
        1: "..FFFFFFBBBBBBBBBBBB==....",
    }


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 4), (4, 9), (8, 16), (4, 64), (8, 128), (3, 1000)])
@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("width", [80, 100])
def test_idle_columns_are_the_bubble(stages: int, microbatches: int, schedule: str, width: int) -> None:
    """Each stage idles (P - 1) / (M + P - 1) of a step without an exchange, whatever the width of a column."""
    plan, found = made(stages, microbatches, schedule=schedule, sync=0.0)
    drawn = strips(plan, found, width)
    assert len(drawn) == stages
    for strip in drawn.values():
        idle = (stages - 1) / (microbatches + stages - 1) * len(strip)
        assert abs(strip.count(".") - idle) < 1.5


@pytest.mark.parametrize("chunks", [2, 4])
def test_pauses_shorter_than_a_column_are_seen(chunks: int) -> None:
    """Interleaved, with transfers that are waited for: idle columns are what a stage does not work."""
    plan, found = made(4, 32, chunks=chunks, hop=0.3, sync=0.0)
    for stage, strip in strips(plan, found).items():
        busy = sum(event.end - event.start for event in found.passes[stage]) / found.step_time
        assert abs(strip.count(".") - (1 - busy) * len(strip)) < 1.5


def test_short_passes_that_take_turns_are_one_thing() -> None:
    """1F1B of many micro-batches goes forward and backward by turns between its ends; GPipe never does."""
    first = strips(*made(4, 64, sync=0.0))[0]
    assert re.fullmatch(r"F+\.+\*+[B.]+", first)
    assert first.count("*") > 0.8 * len(first)
    assert re.fullmatch(r"F+\.+B+", strips(*made(4, 64, schedule="gpipe", sync=0.0))[0])
    legend = "\n".join(strip_lines(plan := made(4, 64)[0], filled(plan), made(4, 64)[1]))
    assert "* forward and backward by turns" in legend


def test_each_look_has_its_share() -> None:
    """Cells of a third forward and two thirds backward alternate so; pure cells are what they are; a little adds up."""
    assert "".join(look for look, _ in sampled([{F: 1.0, B: 2.0}] * 9, 3.0, REST)) == "BFBBFBBFB"
    assert "".join(look for look, _ in sampled([{F: 2.0}, {F: 1.0}, {}, {B: 2.0}], 2.0, REST)) == "FF.B"
    tenths = "".join(look for look, _ in sampled([{F: 0.9}] * 40, 1.0, REST))
    assert tenths.count(".") == 4
    assert max(map(len, tenths.split("."))) <= 10


def test_sending_is_told_from_idling() -> None:
    """Where a stage waits for what it sends, that is shown apart from waiting for others."""
    plan, found = made(2, 2, hop=1.0, blocking=True)
    assert ">" in strips(plan, found)[0]
    assert "> sends" in strip_lines(plan, filled(plan), found)[-1]
    assert ">" not in strips(*made(2, 2, hop=1.0))[0]


def test_steps_that_run_into_one_another_are_said_to() -> None:
    """What is drawn is a step alone: two stages and two micro-batches take (2 + 1) x 3 s and the exchange, 10 s.

    Among others it may take as long, which is not worth a word; nor is what three digits do not show.
    """
    plan, found = made(2, 2)
    plan = replace(plan, schedule="pipedream-2bw")
    among = strip_lines(plan, filled(plan), replace(found, adds=7.0))
    assert "a step takes 10.0 s alone, as here, and 7.00 s among others" in " ".join(" ".join(among).split())
    for adds in (10.0, 9.999):
        assert "alone" not in " ".join(strip_lines(plan, filled(plan), replace(found, adds=adds)))


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(2, 1, 1), (8, 256, 1), (4, 64, 3), (60, 60, 1)])
def test_no_line_is_wider_than_the_page(stages: int, microbatches: int, chunks: int, width: int) -> None:
    """Whatever the plan, also where it is too full; and strips are equally long."""
    plan, found = made(stages, microbatches, chunks=chunks, hop=0.1)
    prediction = filled(plan)
    full = replace(prediction.stages[-1], memory=(("weights", 12345 * GIB),))
    prediction = replace(prediction, stages=(*prediction.stages[:-1], full))
    lines = strip_lines(plan, prediction, found, width)
    assert max(map(len, lines)) <= width
    assert "too full" in "\n".join(lines)
    assert len({len(strip) for strip in strips(plan, found, width).values()}) == 1


def test_of_many_stages_some_are_shown() -> None:
    """The ends, the busiest and the fullest are among eight of sixty; the others lie between them."""
    plan, found = made(60, 60)
    prediction = filled(plan)
    slow = replace(prediction.stages[17], forward=1.5)
    full = replace(prediction.stages[40], memory=(("weights", 60.9 * GIB),))
    stages = (*prediction.stages[:17], slow, *prediction.stages[18:40], full, *prediction.stages[41:])
    text = "\n".join(strip_lines(plan, replace(prediction, stages=stages), found))
    shown = [int(stage) for stage in re.findall(r"stage (\d+)  +\S", text)][:MOST]
    assert shown == [0, 8, 17, 28, 34, 40, 49, 59]
    said = " ".join(text.split())
    assert "8 of 60 stages are shown, stage 17 is the busiest, 40 the fullest" in said
    alike = " ".join("\n".join(strip_lines(plan, filled(plan), found)).split())
    assert "stage 0 is the busiest, 59 the fullest" in alike


def test_kinds_of_pipelines_are_told_apart() -> None:
    """Stages are numbered on below a line for each kind; a kind that is done waits for the other one."""
    first, second = made(2, 4)[0], made(3, 9)[0]
    plan = replace(first, other_pipelines=(second,))
    one, other = made(2, 4)[1], made(3, 9)[1]
    events = (*one.events, *(event._replace(stage=event.stage + 2) for event in other.events))
    found = Timeline(events=events, memory=(*one.memory, *other.memory), step_time=other.step_time, adds=other.adds)
    lines = strip_lines(plan, filled(plan), found)
    names = [" ".join(line.split()[:2]) for line in lines[2:9]]
    assert names == ["pipelines 0", "stage 0", "stage 1", "pipelines 1", "stage 2", "stage 3", "stage 4"]
    assert re.search(r"==?\.{10,}  ", lines[3])


def test_a_single_stage_has_a_bar_of_memory_alone() -> None:
    """What it does when says nothing; 1 of 2 GiB are half of 30 cells."""
    plan, found = made(1, 8)
    assert strip_lines(plan, filled(plan), found) == [f"memory   {'█' * 15}{'░' * 15} 1.0 of 2.0 GiB"]


def test_too_many_passes_are_counted() -> None:
    """2 x 4 x 4,096 passes: memory is shown, and what draws the rest is named."""
    plan = replace(made(4, 1)[0], num_microbatches=4096)
    lines = strip_lines(plan, filled(plan), None)
    assert lines[1:3] == [MEMORY_TITLE, f"  stage 0  {'█' * 6}{'░' * 24} 1.0 of 5.0 GiB"]
    assert lines[-1] == "  32,768 passes are too many to be drawn here; planner timeline PLAN draws them"
    plan = replace(made(60, 1)[0], num_microbatches=4096)
    lines = strip_lines(plan, filled(plan), None)
    assert [line.split()[1] for line in lines if line.startswith("  stage")] == ["0", "59"]
    assert "2 of 60 stages are shown, stage 0 is the busiest, 59 the fullest" in " ".join("\n".join(lines).split())


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def test_strips_are_coloured_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of forward passes is black on cyan; without colour, and where nothing else is, it is letters."""
    plan, found = made(4, 4)
    page = "\n".join(strip_lines(plan, filled(plan), found, 44 + BESIDE)) + "\nFFFF is no strip\n"
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    write(page, terminal)
    assert "\x1b[30;106mFFFFFFFF\x1b[0m" in terminal.getvalue()
    assert "\x1b[30;43mBBBB\x1b[0m" in terminal.getvalue()
    assert "\nFFFF is no strip" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    write(page, plain)
    assert plain.getvalue() == page
