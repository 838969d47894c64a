"""A step as a drawing in characters: a line for each stage, a column for each bit of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from planner.domain.plan import Plan
from planner.report.cells import OTHER, Stretch, lengths
from planner.report.figures import gib, seconds, words
from planner.report.layout import WIDTH, cut, heading, joined, labelled
from planner.report.looks import (
    BUSY_ELSEWHERE,
    CUT,
    IDLE,
    KINDS,
    LETTERS,
    OTHER_STYLES,
    SENDS,
    STYLES,
    Look,
)
from planner.report.overlap import overlap
from planner.report.plan import decision
from planner.report.span import GAP, Segment, segments
from planner.report.stages import replicas_text
from planner.report.window import busy
from planner.simulate import Event, Timeline
from planner.simulate.events import COMPUTE, DP, P2P

GROUP = 14
"""[columns] that the name of a group may take."""
NAMED = 60
"""[columns] of a page from which on groups are named."""
MOST_ROWS = 48
"""Lines of stages; of more the last ones are counted."""
MOST_CHUNKS = 24
"""Lines of chunks; with more, those of a stage are one."""
LEAST = 0.8
"""[columns] that the shortest pass must take for micro-batches to be told apart."""


@dataclass(frozen=True, slots=True)
class Gantt:
    """A drawing, and where it is coloured."""

    text: str
    spans: tuple[tuple[int, int, str], ...]
    """(first character, the one after the last, style)."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line: a stage, or one of its chunks."""

    title: str
    stage: int
    chunk: int
    """-1 where the line is of all chunks."""


def gantt(plan: Plan, found: Timeline, width: int = WIDTH) -> Gantt:
    """Return the drawing of a step: of a long one its beginning and its end, if all between them repeats."""
    rows = _rows(plan, width)
    shown = rows[: MOST_ROWS - 1] if len(rows) > MOST_ROWS else rows
    title = max(len(row.title) for row in shown)
    busies = [f"{busy(passes) / found.step_time:>5.0%}" for passes in found.passes]
    peaks = [gib(max(size for _, size in memory)).rjust(7) for memory in found.memory]
    cells = max(1 + 2 * GAP, width - title - 1 - len(busies[0]) - len(peaks[0]))
    parts = segments(found, cells)
    page = _Page()
    texts = (("plan", decision(plan)), ("step", _said(found)), ("note", overlap(plan, found)))
    for line in [*(line for label, text in texts if text for line in labelled(label, text, width)), ""]:
        page.line(line)
    page.line(" " * (title + 1 + cells) + " busy    GiB")
    events = _by_stage(found)
    told = _told(found, parts)
    starts = _kind_starts(plan)
    for row in shown:
        if row.chunk <= 0 and row.stage in starts:
            for line in heading(starts[row.stage], width):
                page.line(line)
        page.add(row.title.ljust(title) + " ")
        for part in parts:
            page.cells(_cells(events[row.stage], row, part, told=row.stage in told))
        page.line(f"{busies[row.stage]}{peaks[row.stage]}" if row.chunk <= 0 else "")
    if len(rows) > len(shown):
        for line in heading(f"... and {len(rows) - len(shown)} more lines; --format chrome has them all", width):
            page.line(line)
    for line in _axis(parts):
        page.line(" " * (title + 1) + line)
    page.line("")
    for line in _legend(plan, found, page.drawn, width):
        page.line(line)
    return Gantt(text="".join(page.text), spans=tuple(page.spans))


class _Page:
    """Text and colours, written from left to right."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.spans: list[tuple[int, int, str]] = []
        self.length = 0
        self.drawn: set[str] = set()

    def add(self, text: str) -> None:
        self.text.append(text)
        self.length += len(text)

    def line(self, text: str) -> None:
        if not text:  # nothing follows what may end in blanks
            while self.text and self.text[-1] == BUSY_ELSEWHERE:
                self.text.pop()
                self.length -= 1
        self.add(f"{text}\n")

    def cells(self, cells: Iterable[Look]) -> None:
        """Add (character, style), alike neighbours in one span."""
        for style, run in groupby(cells, key=lambda cell: cell[1]):
            characters = [character for character, _ in run]
            if style:
                self.spans.append((self.length, self.length + len(characters), style))
            self.drawn.update(characters)
            for character in characters:
                self.add(character)


def _rows(plan: Plan, width: int) -> list[_Row]:
    """Return the lines of stages; of their chunks, and with the names of groups, where there is room."""
    stages = plan.all_stages
    chunks = plan.virtual_stages if len(stages) * plan.virtual_stages <= MOST_CHUNKS else 1
    several = len({stage.group for stage in stages}) > 1 and width >= NAMED
    rows = []
    for index, stage in enumerate(stages):
        where = f" {cut(stage.group, GROUP)}" if several else ""
        for chunk in range(chunks):
            number = f"{index}.{chunk}" if chunks > 1 else str(index)
            rows.append(_Row(f"stage {number}{where}", index, chunk if chunks > 1 else -1))
    return rows


def _said(found: Timeline) -> str:
    """Return how long the step is, and what the figures behind the lines are."""
    most = "GiB: most memory in it, on the fullest device"
    return f"{seconds(found.step_time)}; busy: time in passes, over the step; {most}"


def _kind_starts(plan: Plan) -> dict[int, str]:
    """Return the line above the first stage of each kind of pipeline, where there are several."""
    found, start = {}, 0
    for kind, pipeline in enumerate(plan.pipelines):
        if plan.other_pipelines:
            found[start] = f"pipelines {kind}: {replicas_text(pipeline)}"
        start += pipeline.num_stages
    return found


def _by_stage(found: Timeline) -> list[list[Event]]:
    """Return what is drawn of each stage."""
    events: list[list[Event]] = [[] for _ in range(found.num_stages)]
    for event in found.events:
        if event.lane in {COMPUTE, P2P} or (event.lane == DP and event.micro_batch < 0):
            events[event.stage].append(event)
    return events


def _told(found: Timeline, parts: Sequence[Segment]) -> set[int]:
    """Return the stages whose passes are so long that micro-batches can be told apart."""
    cell = min(part.cell for part in parts if not part.is_cut)
    shortest = [min(event.end - event.start for event in passes) for passes in found.passes]
    return {stage for stage, time in enumerate(shortest) if time >= LEAST * cell}


def _cells(events: Sequence[Event], row: _Row, part: Segment, *, told: bool) -> Iterator[Look]:
    """Yield the look of each cell: the longest thing in it."""
    if part.is_cut:
        yield from [(CUT, "bright_black")] * part.num_cells
        return
    stretches = (Stretch(event.start, event.end, _look(event, row, told=told)) for event in events)
    for found in lengths(stretches, part):
        yield _longest(found, part.cell)


def _longest(found: dict[Look, float], cell: float) -> Look:
    """Return what fills most of a cell; a pass before what runs beside it."""
    passes = {look: length for look, length in found.items() if look[0] not in OTHER_STYLES}
    rest = {look: length for look, length in found.items() if look not in passes}
    if sum(passes.values()) >= cell / 2:
        return max(passes, key=lambda look: passes[look])
    if rest and max(rest.values()) >= cell / 2:
        return max(rest, key=lambda look: rest[look])
    return IDLE, OTHER_STYLES[IDLE]


def _look(event: Event, row: _Row, *, told: bool) -> Look:
    """Return the character and the style of an event."""
    if event.lane == P2P:
        return SENDS, OTHER_STYLES[SENDS]
    if event.micro_batch < 0:
        return OTHER[event.name], OTHER_STYLES[OTHER[event.name]]
    if row.chunk not in {-1, event.chunk}:
        return BUSY_ELSEWHERE, ""
    letter = LETTERS[event.name][event.micro_batch % 10] if told else event.name
    return letter, STYLES[event.name]


def _axis(parts: Sequence[Segment]) -> list[str]:
    """Return the axis of time: a line of ticks, and their times."""
    ticks, times = [], ""
    position = 0
    for part in parts:
        marks = part.ticks()
        ticks += ["|" if cell in marks else CUT if part.is_cut else "-" for cell in range(part.num_cells)]
        for cell, text in marks.items():
            at = position + cell
            if len(times) < at or not times:
                times = times.ljust(at) + text
        position += part.num_cells
    return ["".join(ticks), times]


def _legend(plan: Plan, found: Timeline, drawn: set[str], width: int) -> list[str]:
    """Return what the characters mean, those that are drawn."""
    kinds = {event.name for passes in found.passes for event in passes}
    told = bool(drawn & {character for letters in LETTERS.values() for character in letters})
    texts = []
    for kind in (kind for kind in KINDS if kind in kinds):
        if drawn & {*LETTERS[kind]}:
            texts.append(f"{LETTERS[kind][0]}-{LETTERS[kind][-1]} {KINDS[kind]} of micro-batch 0-9, 10-19, ...")
        if kind in drawn:
            texts.append(f"{kind} {KINDS[kind]}{' of a shorter pass' * told}")
    others = {SENDS: "sends only", **{character: words(name) for name, character in OTHER.items()}, IDLE: "idle"}
    others[CUT] = "not shown: the passes between repeat"
    texts += [f"{character} {text}" for character, text in others.items() if character in drawn]
    if BUSY_ELSEWHERE in drawn:
        texts.append(f"blank: at work on another of the stage's {plan.virtual_stages} chunks")
    return labelled("legend", "; ".join(joined(text) for text in texts), width)
