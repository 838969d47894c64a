"""A plan's step at a glance: a line for each stage with what it does when, and how full its devices are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from planner.domain.plan import Plan
from planner.domain.prediction import Prediction, StagePrediction, busiest_stage
from planner.report.cells import OTHER, Stretch, lengths, sampled
from planner.report.figures import count, gib, percent, plural, seconds, words
from planner.report.layout import SEPARATOR, WIDTH, bar, joined, labelled
from planner.report.looks import BY_TURNS, BY_TURNS_STYLE, IDLE, KINDS, OTHER_STYLES, SENDS, STYLES, Look
from planner.report.overlap import is_longer
from planner.report.span import Segment
from planner.report.window import busy
from planner.simulate import Event, Timeline
from planner.simulate.events import COMPUTE, DP, P2P
from planner.simulate.timeline import num_passes
from planner.units import Seconds

TITLE, MEMORY_TITLE = "a step, stage by stage", "memory, stage by stage"
MOST = 8
"""Stages that are shown; where there are no more, all of them."""
SHARE = 6
"""[columns] of a share of the step."""
BAR, LONE_BAR = 10, 30
"""[columns] of a bar of memory, and of one beside which no step is drawn."""
ROOM = 20
"""[columns] that a strip must have before there are bars of memory."""
LEAST = 8
"""[columns] of a strip below which there is less beside it."""
SHORT = 1.2
"""[columns] that passes must take on average to be drawn one by one."""
NEAR = 2
"""Passes before and behind one that are close to it."""


def strip_lines(plan: Plan, prediction: Prediction, step: Timeline | None, width: int = WIDTH) -> list[str]:
    """Return the lines that follow the figures of a plan: of a single stage its memory alone.

    Args:
        plan: whose stages they are.
        prediction: their time and memory.
        step: what they do; None where that is not drawn, as of a single stage, or of too many passes.
        width: [columns] of the page.
    """
    if len(plan.all_stages) == 1:
        stage = prediction.stages[0]
        return labelled("memory", joined(f"{_bar(stage, LONE_BAR)}{_memory(stage)}"), width)
    shown, chosen = _shown(plan, prediction, MOST if step else 1)
    if step is None:
        lines = _memories(plan, prediction, shown, width)
        said = f"{count(num_passes(plan))} passes are too many to be drawn here; planner timeline PLAN draws them"
    else:
        lines, said = _strips(plan, prediction, step, shown, width)
    return ["", *lines, *labelled("", f"{said}{chosen}", width, indent=2)]


def _shown(plan: Plan, prediction: Prediction, number: int) -> tuple[list[int], str]:
    """Return the stages that are shown, and what is to be said of that if they are not all.

    The ends of each kind of pipeline, the busiest and the fullest; up to `number` also those farthest from these.
    """
    stages, starts = prediction.stages, _starts(plan)
    if len(stages) <= MOST:
        return list(range(len(stages))), ""
    busiest = busiest_stage(plan, stages)
    fullest = max(range(len(stages)), key=lambda index: stages[index].peak_memory / stages[index].memory_limit)
    chosen = {busiest, fullest, *starts, *(start - 1 for start in starts[1:]), len(stages) - 1}
    while len(chosen) < number:
        before, after = max(pairwise(sorted(chosen)), key=lambda pair: pair[1] - pair[0])
        chosen.add((before + after) // 2)
    most = f"stage {busiest} is the busiest{f', {fullest}' if fullest != busiest else ' and'} the fullest"
    return sorted(chosen), f"; {len(chosen)} of {plural(len(stages), 'stage')} are shown, {most}"


def _starts(plan: Plan) -> list[int]:
    """Return the first stage of each kind of pipeline."""
    starts = [0]
    for one in plan.pipelines[:-1]:
        starts.append(starts[-1] + one.num_stages)
    return starts


def _strips(
    plan: Plan, prediction: Prediction, step: Timeline, shown: Sequence[int], width: int
) -> tuple[list[str], str]:
    """Return the lines of the stages, and what is in them."""
    stages = [prediction.stages[index] for index in shown]
    name = len(_names(shown)[0]) + len(SEPARATOR)
    beside, memories = _beside(stages, width - name - LEAST)
    room = width - name - beside - len(SEPARATOR) - max(map(len, memories))
    bars = BAR if room - BAR - 1 >= ROOM else 0
    part = Segment(0.0, step.step_time, max(1, room - bars - bool(bars)))
    passes = step.passes
    short = _short(plan, passes, part.cell)
    strips = [_strip(step, index, _turns(passes[index]) if short[index] else set(), part) for index in shown]
    shares = [percent(busy(passes[index]) / step.step_time) if beside else "" for index in shown]
    filling = [_bar(stage, bars) for stage in stages]
    cells = zip(strips, shares, filling, memories, strict=True)
    texts = (f"{strip}{share.rjust(beside)}{SEPARATOR}{drawn}{memory}" for strip, share, drawn, memory in cells)
    title = f"{TITLE.ljust(name + part.num_cells)}{'busy'.rjust(beside) * bool(beside)}{SEPARATOR}memory"
    lines = _rows(plan, shown, texts)
    said = [_legend({*"".join(strips)}), joined(f"a column is {seconds(part.cell)}")]
    if is_longer(step):
        alone, among = joined(seconds(step.step_time)), joined(seconds(step.adds))
        said.append(f"a step takes {alone} alone, as here, and {among} among others")
    return [title, *lines], "; ".join(said)


def _memories(plan: Plan, prediction: Prediction, shown: Sequence[int], width: int) -> list[str]:
    """Return the lines of the stages where no step is drawn."""
    stages = [prediction.stages[index] for index in shown]
    room = width - len(_names(shown)[0]) - len(SEPARATOR)
    _, memories = _beside(stages, room)
    bars = min(LONE_BAR, room - max(map(len, memories)) - 1)
    texts = [f"{_bar(stage, bars)}{memory}" for stage, memory in zip(stages, memories, strict=True)]
    return [MEMORY_TITLE, *_rows(plan, shown, texts)]


def _short(plan: Plan, passes: Sequence[Sequence[Event]], cell: Seconds) -> list[bool]:
    """Return of each stage whether the passes of its kind of pipeline are too short to be drawn one by one."""
    found: list[bool] = []
    for one in plan.pipelines:
        own = passes[len(found) : len(found) + one.num_stages]
        found += [sum(map(busy, own)) < SHORT * cell * sum(map(len, own))] * one.num_stages
    return found


def _rows(plan: Plan, shown: Sequence[int], texts: Iterable[str]) -> list[str]:
    """Return the lines of stages, below one for each kind of pipeline where there are several."""
    starts = _starts(plan) if plan.other_pipelines else []
    lines = []
    for index, name, text in zip(shown, _names(shown), texts, strict=True):
        if index in starts:
            lines.append(f"  pipelines {starts.index(index)}")
        lines.append(f"{name}{SEPARATOR}{text}")
    return lines


def _names(shown: Sequence[int]) -> list[str]:
    """Return what stands before the lines of stages, equally long."""
    most = len(str(max(shown)))
    return [f"  stage {str(index).ljust(most)}" for index in shown]


def _beside(stages: Sequence[StagePrediction], room: int) -> tuple[int, list[str]]:
    """Return the columns for the share of passes, and the memory of each stage, that `room` [columns] hold."""
    share = len(SEPARATOR) + SHARE
    memories = [_memory(stage) for stage in stages]
    width = len(SEPARATOR) + max(map(len, memories))
    if share + width <= room:
        return share, memories
    return 0, memories if width <= room else [text.replace(" of ", "/").replace(" GiB", "") for text in memories]


def _memory(stage: StagePrediction) -> str:
    """Return how full the fullest device of a stage is."""
    return f"{gib(stage.peak_memory)} of {gib(stage.memory_limit)} GiB{'' if stage.fits else ' too full'}"


def _bar(stage: StagePrediction, cells: int) -> str:
    """Return the same as a bar of at most `cells` cells, and a blank; nothing where there is no room."""
    return f"{bar(stage.peak_memory / stage.memory_limit, cells)} " if cells > 0 else ""


def _strip(step: Timeline, stage: int, turns: set[Event], part: Segment) -> str:
    """Return what a stage does, a character for each cell; passes of `turns` are one thing, of whatever kind."""
    looks = (
        Stretch(event.start, event.end, (BY_TURNS, BY_TURNS_STYLE) if event in turns else _look(event))
        for event in step.events
        if event.stage == stage and _is_drawn(event, step)
    )
    return "".join(look for look, _ in sampled(lengths(looks, part), part.cell, (IDLE, OTHER_STYLES[IDLE])))


def _is_drawn(event: Event, step: Timeline) -> bool:
    """Tell whether a stage does nothing else meanwhile."""
    after = event.lane == DP and event.micro_batch < 0
    return event.lane == COMPUTE or after or (event.lane == P2P and step.blocking)


def _turns(passes: Sequence[Event]) -> set[Event]:
    """Return the passes that have another kind of pass close before them and close behind them."""
    kinds = [one.name for one in passes]
    return {
        one
        for index, one in enumerate(passes)
        if {*kinds[max(0, index - NEAR) : index]} - {one.name} and {*kinds[index + 1 : index + 1 + NEAR]} - {one.name}
    }


def _look(event: Event) -> Look:
    if event.lane == P2P:
        return SENDS, OTHER_STYLES[SENDS]
    if event.micro_batch < 0:
        return OTHER[event.name], OTHER_STYLES[OTHER[event.name]]
    return event.name, STYLES[event.name]


def _legend(drawn: set[str]) -> str:
    """Return what the characters mean, those that are drawn."""
    after = {look: words(name) for name, look in OTHER.items()}
    names = {**KINDS, BY_TURNS: "forward and backward by turns", SENDS: "sends", **after, IDLE: "idle"}
    return ", ".join(joined(f"{look} {name}") for look, name in names.items() if look in drawn)
