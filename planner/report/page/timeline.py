"""One step, drawn: a row for each stage, passes above, transfers below; zoomed and read by ``timeline.js``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from planner.domain.plan import Plan
from planner.report.figures import percent, plural, seconds, words
from planner.report.overlap import overlap
from planner.report.page.looks import Looks, legend
from planner.report.page.markup import Markup, join, table, tag
from planner.report.page.patterns import definitions
from planner.report.page.subject import Subject
from planner.report.window import busy, window
from planner.schedules import schedule_of
from planner.simulate import Event, Timeline
from planner.simulate.events import COMPUTE, DP, P2P
from planner.simulate.timeline import EXCHANGE

MOST_EVENTS = 4000
"""Passes, transfers and exchanges that are drawn: of more no transfers, then only what is near the ends of the step."""
MOST_STAGES = 64
"""Rows that are drawn."""
TOP = 26
"""[px] of the axis above the rows."""
GAP = 0.03
"""[-] of the width, for what is left out."""
LABELLED = 0.02
"""[-] of the width from which on a pass has its name written into it."""
MOST_WIDE = 24
"""Rows that are as high as is read best; more are lower, and have the times of the axis below them once more."""
TICKS = 32
"""Ticks of the axis; most have their times only when it is zoomed."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Where a row has its parts [px]."""

    height: int
    passes: tuple[int, int]
    """Top and height."""
    transfers: tuple[int, int]
    text: int
    """Its base line."""


WIDE = Lines(height=34, passes=(3, 22), transfers=(27, 4), text=18)
LOW = Lines(height=14, passes=(2, 10), transfers=(12, 2), text=10)


@dataclass(frozen=True, slots=True)
class Axis:
    """Time to place: all of the step, or its two ends."""

    parts: tuple[tuple[float, float, float, float], ...]
    """(from [s], to [s], from [-], to [-]) of the width."""

    def place(self, time: float) -> float:
        """Return where a time is [-]."""
        for start, end, left, right in self.parts:
            if time <= end or (start, end, left, right) == self.parts[-1]:
                return left + max(0.0, time - start) / (end - start) * (right - left)
        raise AssertionError(time)

    def time(self, place: float) -> float | None:
        """Return the time at a place; None where nothing is shown."""
        for start, end, left, right in self.parts:
            if left <= place <= right:
                return start + (place - left) / (right - left) * (end - start)
        return None


def timeline(about: Subject) -> Markup:
    """Return the drawing with its controls and its legend, and the same in figures."""
    found, plan = about.timeline, about.plan
    num_rows = min(found.num_stages, MOST_STAGES)
    drawn = [event for event in found.events if event.stage < num_rows and _is_drawn(event)]
    if len(drawn) > MOST_EVENTS:
        drawn = [event for event in drawn if event.lane != P2P]
    shown = window(drawn, found.step_time, MOST_EVENTS)
    axis = _axis(found, shown.gap)
    looks = Looks(plan.virtual_stages, schedule_of(plan).directions)
    lines = WIDE if num_rows <= MOST_WIDE else LOW
    rows = [_row(index, shown.events, axis, looks, lines) for index in range(num_rows)]
    height, below = TOP + lines.height * num_rows, TOP * (lines is LOW)
    said = f"{plural(num_rows, 'stage')} over {seconds(found.step_time)}; the table below has the same in figures"
    picture = tag(
        "svg",
        definitions(),
        tag("g", *_ticks(axis, (14, height + 14) if below else (14,), height), class_="axis"),
        *rows,
        *_cut(axis, height),
        width="100%",
        height=height + below,
        role="img",
        aria_label=f"Timeline of one step: {said}",
        data_axis=json.dumps(axis.parts),
        data_text=lines.text,
    )
    hidden = found.num_stages - num_rows
    return join(
        _controls(),
        tag(
            "div",
            tag("div", *(_name(plan, index) for index in range(num_rows)), class_="names", aria_hidden="true"),
            tag("div", picture, class_="pane", tabindex="0", role="group", aria_label=HELP),
            class_="timeline" if lines is WIDE else "timeline low",
        ),
        tag("p", f"{plural(hidden, 'stage')} more not drawn.") if hidden else "",
        tag("p", f"The gap stands for {plural(shown.num_hidden, 'event')}, which repeat.") if shown.gap else "",
        tag("p", f"Note: {note}.") if (note := overlap(plan, found)) else "",
        tag("p", HELP, class_="readout", role="status", aria_live="polite"),
        legend(looks, shown.events, _said(plan)),
        tag("details", tag("summary", "In figures"), _figures(found), class_="figures"),
    )


HELP = "Point at a pass or focus the drawing and walk with the arrow keys; + and - zoom, 0 shows all."


def _is_drawn(event: Event) -> bool:
    return event.lane in {COMPUTE, P2P} or (event.lane == DP and event.name == EXCHANGE)


def _axis(found: Timeline, gap: tuple[float, float] | None) -> Axis:
    if gap is None:
        return Axis(((0.0, found.step_time, 0.0, 1.0),))
    side = (1 - GAP) / 2
    return Axis(((0.0, gap[0], 0.0, side), (gap[1], found.step_time, 1 - side, 1.0)))


def _row(stage: int, events: tuple[Event, ...], axis: Axis, looks: Looks, lines: Lines) -> Markup:
    """Return what a stage does: transfers first, so that passes lie above what runs beside them."""
    own = [event for event in events if event.stage == stage]
    passes = [event for event in own if event.lane != P2P]
    texts = [text for event in passes if event.micro_batch >= 0 for text in _text(event, axis, looks, lines)]
    return tag(
        "g",
        *(_block(event, axis, looks, lines) for event in own if event.lane == P2P),
        *(_block(event, axis, looks, lines) for event in passes),
        tag("g", *texts, class_="texts"),
        transform=f"translate(0 {TOP + lines.height * stage})",
        data_stage=stage,
    )


def _block(event: Event, axis: Axis, looks: Looks, lines: Lines) -> Markup:
    """Return the rectangle of an event, without what can be computed from where it lies."""
    left = axis.place(event.start)
    width = axis.place(event.end) - left
    is_sent = event.lane == P2P
    top, height = lines.transfers if is_sent else lines.passes
    return tag(
        "rect",
        x=_share(left),
        width=_share(width),
        y=top,
        height=height,
        class_=looks.classes(event),
        data_m=event.micro_batch if event.micro_batch >= 0 else None,
        data_c=looks.chunk(event),
        data_w=1 if looks.is_from_other_end(event) else None,
        data_o=event.other if is_sent else None,
    )


def _text(event: Event, axis: Axis, looks: Looks, lines: Lines) -> Iterator[Markup]:
    left, right = axis.place(event.start), axis.place(event.end)
    if right - left >= LABELLED:
        dark = None if looks.classes(event).endswith("F0") else "dark"
        yield tag("text", looks.name(event), x=_share((left + right) / 2), y=lines.text, class_=dark)


def _share(share: float) -> str:
    return f"{100 * share:.4f}".rstrip("0").rstrip(".") + "%"


def _ticks(axis: Axis, heights: tuple[int, ...], bottom: int) -> Iterator[Markup]:
    """Yield the lines of the axis, and their times at some heights; how coarse a tick is decides when they show."""
    for index in range(TICKS + 1):
        place = index / TICKS
        time = axis.time(place)
        if time is None:
            continue
        level = next(level for level, every in enumerate((TICKS // 4, TICKS // 8, 1)) if index % every == 0)
        anchor = "start" if index == 0 else "end" if index == TICKS else "middle"
        at, text = _share(place), seconds(time) if time else "0"
        yield tag("line", x1=at, x2=at, y1=TOP - 6, y2=bottom, class_=f"l{level}")
        yield from (tag("text", text, x=at, y=y, text_anchor=anchor, class_=f"l{level}") for y in heights)


def _cut(axis: Axis, height: int) -> Iterator[Markup]:
    """Yield what stands for events that are left out."""
    if len(axis.parts) > 1:
        left, right = axis.parts[0][3], axis.parts[1][2]
        yield tag("rect", x=_share(left), width=_share(right - left), y=TOP, height=height - TOP, class_="cut")


def _name(plan: Plan, index: int) -> Markup:
    stage = plan.all_stages[index]
    several = len({one.group for one in plan.all_stages}) > 1
    return tag("div", tag("b", f"stage {index}"), f" {stage.group}" if several else "", title=stage.group)


def _controls() -> Markup:
    buttons = (("-", "Zoom out"), ("+", "Zoom in"), ("0", "Show all"))
    made = [
        tag("button", name if name != "0" else "all", type="button", data_zoom=name, aria_label=title, title=title)
        for name, title in buttons
    ]
    return tag("div", *made, class_="controls", role="toolbar", aria_label="Zoom of the timeline")


def _said(plan: Plan) -> str:
    kinds = "each kind of pipeline" if plan.other_pipelines else "the pipelines, which are alike"
    return (
        f"One replica stands for {kinds}. Exchanges inside a pass are part of it; what nobody waits for is not drawn."
    )


def _figures(found: Timeline) -> Markup:
    """Return each stage's lanes as a table."""
    waited: dict[str, list[float]] = {}
    for event in found.events:
        if event.lane != COMPUTE:
            waited.setdefault(event.lane, [0.0] * found.num_stages)[event.stage] += event.end - event.start
    rows = []
    for stage, passes in enumerate(found.passes):
        worked = busy(passes)
        rows.append(
            [
                str(stage),
                seconds(passes[0].start),
                seconds(passes[-1].end),
                seconds(worked),
                percent(worked / found.step_time),
                *(seconds(times[stage]) if times[stage] else "" for times in waited.values()),
            ]
        )
    head = ["stage", "first pass", "last pass ends", "in passes", "of the step", *map(words, waited)]
    return table(head, rows, right=tuple(head), caption="What each stage does in a step; lanes may run beside passes")
