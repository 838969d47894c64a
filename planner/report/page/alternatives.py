"""What else the search found: step time against what it costs, and why the runners-up lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.domain.plan import Plan
from planner.domain.prediction import Alternative, Prediction
from planner.report.figures import count, gib, percent, seconds
from planner.report.page.markup import Markup, figure, join, table, tag
from planner.report.page.subject import Subject
from planner.report.plan import RUNNERS_UP_TITLE, decision, hourly_price, runner_up_rows

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 340, 250, 58, 40, 18, 16
"""[units] of a chart and its margins."""
CHARTS = "The star is this plan; numbers are the rows of the table. The line joins what nothing beats in both."
WALK = "Point at a plan, or focus the charts and walk with the arrow keys."
NO_OTHERS = "The search met no other kind of plan."
SIZE = 13
"""[units] of a point."""
NEAR = 5e-3
"""[-] by which values may differ to be alike."""


@dataclass(frozen=True, slots=True)
class Option:
    """A plan in the charts."""

    mark: str
    """What stands in its point, and in its row."""
    plan: Plan
    prediction: Prediction
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """What step time is drawn against."""

    head: str
    """Title of its column."""
    name: str
    value: Callable[[Plan, Prediction], float]
    text: Callable[[float], str]
    is_predicted: bool = True
    """Whether it is a figure of the prediction."""

    def tells(self, options: list[Option]) -> bool:
        """Tell whether it is known of all plans, and not the same for all."""
        values = [self.value(option.plan, option.prediction) for option in options]
        return min(values) > 0 and max(values) - min(values) > NEAR * max(values)


def alternatives(about: Subject) -> Markup:
    """Return the charts and the table; nothing where no search was made."""
    found = about.found
    if found is None:
        return Markup("")
    options = [Option("*", about.plan, about.prediction, is_chosen=True)]
    better = found.plan != about.plan
    if better:
        options.append(Option("S", found.plan, found.prediction))
    head, rows = runner_up_rows(found)
    shown = list(enumerate(found.alternatives[: len(rows)], 1))
    options += [Option(str(number), one.plan, one.prediction) for number, one in shown if one.plan != about.plan]
    measures = [one for one in _measures(about) if one.tells(options)]
    charts = [_chart(one, options) for one in measures]
    cells = [
        [str(number), *row[:-3], figure(one.prediction.step_time, row[-3]), row[-2], *_told(one, measures), row[-1]]
        for (number, one), row in zip(shown, rows, strict=True)
    ]
    head = [*head[:-1], *(one.head for one in measures), head[-1]]
    used = [index for index, title in enumerate(["", *head]) if title == "" or any(row[index] for row in cells)]
    titles = [["", *head][index] for index in used]
    lines = [[row[index] for index in used] for row in cells]
    return join(
        tag(
            "p",
            tag("b", "S: "),
            f"a search for the same job finds another plan, {decision(found.plan)}: ",
            figure(found.prediction.step_time, seconds(found.prediction.step_time)),
        )
        if better
        else "",
        tag(
            "div",
            _drawn(charts) if charts else "",
            table(titles, lines, right=tuple(titles[1:-1]), caption=RUNNERS_UP_TITLE.capitalize())
            if rows
            else NO_OTHERS,
            class_="options",
        ),
        _rejected(about),
    )


def _drawn(charts: list[Markup]) -> Markup:
    """Return charts whose points can be walked to, and the line that tells of them."""
    return tag(
        "div",
        tag("div", *charts, class_="charts", tabindex=0, role="group", aria_label=WALK, data_walk="options-said"),
        tag("p", f"{CHARTS} {WALK}", class_="readout", id="options-said", role="status", aria_live="polite"),
        style=f"flex-basis:{330 * len(charts)}px",
    )


def _told(one: Alternative, measures: list[Measure]) -> Iterator[str]:
    """Yield a runner-up's cells of what is drawn."""
    for measure in measures:
        value = measure.value(one.plan, one.prediction)
        yield figure(value, measure.text(value)) if measure.is_predicted else measure.text(value)


def _measures(about: Subject) -> list[Measure]:
    """Return what step time may be drawn against."""

    def cost(plan: Plan, prediction: Prediction) -> float:
        """Return what 10^9 tokens cost; zero where a price is not known."""
        return hourly_price(plan, about.cluster) / 3600 / prediction.tokens_per_second * 1e9

    def memory(_plan: Plan, prediction: Prediction) -> float:
        return prediction.peak_memory

    def devices(_plan: Plan, prediction: Prediction) -> float:
        return float(prediction.num_devices)

    return [
        Measure("GiB", "most memory of a device [GiB]", memory, gib),
        Measure("devices", "devices", devices, count),
        Measure("cost", "cost of 10^9 tokens", cost, lambda value: f"{value:,.4g}", is_predicted=False),
    ]


def _chart(measure: Measure, options: list[Option]) -> Markup:
    """Return step time against a measure."""
    name, text = measure.name, measure.text
    across = [measure.value(option.plan, option.prediction) for option in options]
    times = [option.prediction.step_time for option in options]
    place_x, place_y = _scale(across, LEFT, WIDTH - RIGHT), _scale(times, HEIGHT - BOTTOM, TOP)
    places = _apart([(place_x(x), place_y(y)) for x, y in zip(across, times, strict=True)])
    points = [
        _point(option, place, f"step {seconds(y)}, {name}: {text(x)}")
        for option, place, x, y in zip(options, places, across, times, strict=True)
    ]
    marks = [*_ticks(across, place_x, text, vertical=False), *_ticks(times, place_y, seconds, vertical=True)]
    said = "; ".join(
        f"{option.mark}: {seconds(y)}, {text(x)}" for option, x, y in zip(options, across, times, strict=True)
    )
    picture = tag(
        "svg",
        tag("path", d=f"M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}", class_="frame"),
        *marks,
        tag("path", d=_front(across, times, place_x, place_y), class_="front"),
        *reversed(points),
        tag("text", name, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 6, text_anchor="middle"),
        tag("text", "step time", x=6, y=11),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"Step time against {name}: {said}",
        data_row="",
    )
    return tag("figure", picture)


def _scale(values: list[float], low: float, high: float) -> Callable[[float], float]:
    """Return value -> place, with room at both ends."""
    least, most = min(values), max(values)
    margin = 0.12 * (most - least) or 0.1 * most
    start, stop = least - margin, most + margin
    return lambda value: low + (value - start) / (stop - start) * (high - low)


def _ticks(
    values: list[float], place: Callable[[float], float], text: Callable[[float], str], *, vertical: bool
) -> list[Markup]:
    """Return marks at the least value, the largest and between them."""
    least, most = min(values), max(values)
    found = []
    for value in dict.fromkeys((least, (least + most) / 2, most)):
        at = f"{place(value):.1f}"
        if vertical:
            line = tag("path", d=f"M{LEFT - 4} {at}H{WIDTH - RIGHT}", class_="grid")
            words = tag("text", text(value), x=LEFT - 7, y=at, dy="0.35em", text_anchor="end")
        else:
            line = tag("path", d=f"M{at} {HEIGHT - BOTTOM + 4}V{TOP}", class_="grid")
            words = tag("text", text(value), x=at, y=HEIGHT - BOTTOM + 16, text_anchor="middle")
        found.append(join(line, words))
    return found


def _front(
    across: list[float], times: list[float], place_x: Callable[[float], float], place_y: Callable[[float], float]
) -> str:
    """Return a line through the plans that none beats in both measures."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(zip(across, times, strict=True)):
        if not kept or y < kept[-1][1]:
            kept.append((x, y))
    first, *others = kept
    path = f"M{place_x(first[0]):.1f} {place_y(first[1]):.1f}"
    return path + "".join(f"H{place_x(x):.1f}V{place_y(y):.1f}" for x, y in others)


def _apart(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return places with those that would lie on earlier ones moved to the right."""
    found: list[tuple[float, float]] = []
    for left, y in places:
        x = left
        while any(abs(x - other) < SIZE and abs(y - height) < SIZE for other, height in found):
            x += SIZE
        found.append((x, y))
    return found


def _point(option: Option, place: tuple[float, float], said: str) -> Markup:
    if option.is_chosen:
        star = "M0 -11L3 -4 10 -4 4.5 1 7 9 0 4 -7 9 -4.5 1 -10 -4 -3 -4Z"
        shape = tag("path", d=star, class_="star")
    else:
        shape = join(tag("circle", r=8), tag("text", option.mark, dy="0.35em", text_anchor="middle"))
    name = "this plan" if option.is_chosen else option.mark
    return tag(
        "g",
        tag("title", f"{name}: {said}"),
        shape,
        transform=f"translate({place[0]:.1f} {place[1]:.1f})",
        class_="point",
    )


def _rejected(about: Subject) -> Markup:
    """Return what was not even tried, and why."""
    found = about.found
    if found is None or not found.search.rejections:
        return Markup("")
    reasons = sorted(found.search.rejections, key=lambda item: (-item[1], item[0]))
    rows = [[reason, count(number)] for reason, number in reasons]
    total = sum(number for _, number in reasons)
    share = percent(reasons[0][1] / total)
    made = table(["reason", "candidates"], rows, right=("candidates",), caption=f"{share} of them for the first reason")
    return tag("details", tag("summary", f"{count(total)} candidates were rejected"), made)
