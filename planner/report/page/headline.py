"""The plan at a glance, and the table of its stages."""

from __future__ import annotations

from planner.report.confidence import confidence_lines
from planner.report.explain import binding
from planner.report.figures import count, gib, percent, seconds, short
from planner.report.header import header
from planner.report.layout import LABEL
from planner.report.page.markup import Markup, figure, join, table, tag
from planner.report.page.markup import percent as length
from planner.report.page.subject import Subject
from planner.report.plan import decision, idle_lines, training_lines
from planner.report.pressure import warning_lines
from planner.report.stages import Run, stage_rows
from planner.report.staleness import stale_lines

UNWRAPPED = 100_000
"""[columns] so wide that no line is broken: the browser does it."""

MOST_PROBLEMS = 5
"""Problems that are shown at once."""


def headline(about: Subject, title: str) -> Markup:
    """Return the title, the decision, the figures that matter most, and what is wrong or doubtful."""
    plan, prediction = about.plan, about.prediction
    parts = (about.cluster, about.model, about.job)
    lines = [
        *header(*parts, (), UNWRAPPED),
        *stale_lines(plan, UNWRAPPED),
        *confidence_lines(prediction, UNWRAPPED),
        *warning_lines(prediction, UNWRAPPED),
        *idle_lines(plan, about.cluster, about.job, UNWRAPPED),
        *training_lines(plan, prediction, about.cluster, about.job, UNWRAPPED),
    ]
    return tag(
        "header",
        tag("h1", title),
        tag("p", decision(plan), class_="decision"),
        _problems(about),
        tag("div", *_tiles(about), class_="tiles"),
        tag("dl", *(_term(line) for line in lines), class_="facts"),
        tag("h3", "What binds"),
        tag("ul", *(tag("li", text) for text in binding(plan, prediction))),
    )


def _term(line: str) -> Markup:
    label, text = line[:LABEL].strip(), line[LABEL:].strip()
    return join(tag("dt", label or "\u00a0"), tag("dd", text))


def _tiles(about: Subject) -> list[Markup]:
    """Return the figures that matter most."""
    prediction = about.prediction
    fullest = max(prediction.stages, key=lambda stage: stage.peak_memory / stage.memory_limit)
    each = prediction.tokens_per_second / prediction.num_devices
    tiles = [
        ("step", figure(prediction.step_time, seconds(prediction.step_time)), _likely(about)),
        (
            "tokens a second",
            figure(prediction.tokens_per_second, short(prediction.tokens_per_second)),
            join(figure(each, count(each)), " a device"),
        ),
        (
            "model FLOP utilization",
            figure(prediction.model_flops_utilization, percent(prediction.model_flops_utilization)),
            "of the 16-bit peak",
        ),
        ("idle in the pipeline", figure(prediction.bubble_fraction, percent(prediction.bubble_fraction)), "bubble"),
        (
            "fullest device",
            join(figure(fullest.peak_memory, gib(fullest.peak_memory)), " GiB"),
            join(
                "of ",
                figure(fullest.memory_limit, gib(fullest.memory_limit)),
                f" GiB{'' if fullest.fits else ': too full'}",
            ),
        ),
        (
            "devices",
            figure(prediction.num_devices, count(prediction.num_devices)),
            f"of {count(about.cluster.num_devices)}",
        ),
    ]
    return [
        tag("div", tag("span", name), tag("strong", value), tag("small", note), class_="tile")
        for name, value, note in tiles
    ]


def _likely(about: Subject) -> Markup:
    """Return the interval of the step time, where it is known."""
    confidence = about.prediction.confidence
    if confidence is None:
        return Markup("")
    times = confidence.step_time
    return join("likely ", figure(times.low, seconds(times.low)), " - ", figure(times.high, seconds(times.high)))


def _problems(about: Subject) -> Markup:
    """Return what is wrong with the plan."""
    if not about.problems:
        return Markup("")
    items = [tag("li", tag("code", one.place), f" {one.message}") for one in about.problems]
    rest = items[MOST_PROBLEMS:]
    return tag(
        "div",
        tag("strong", "This plan has problems"),
        tag("ul", *items[:MOST_PROBLEMS]),
        tag("details", tag("summary", f"{len(rest)} more"), tag("ul", *rest), class_="figures") if rest else "",
        class_="problems",
        role="alert",
    )


def stages(about: Subject) -> Markup:
    """Return the table of stages, of each kind of pipeline one; alike neighbours share a row."""
    made = []
    for title, head, rows in stage_rows(about.plan, about.prediction, about.cluster):
        cells = [[row[0], run.stages[0].group, *row[2:], _filled(run)] for run, row in rows]
        numbers = tuple(name for name in head if name not in {"stage", "group", "layers", "recompute"})
        made.append(
            table([*head, "memory GiB"], cells, right=numbers, caption=title or "Stages, alike neighbours in one row")
        )
    return join(*made)


def _filled(run: Run) -> Markup:
    """Return a bar of the fullest stage of a row."""
    stage = run.fullest
    share = stage.peak_memory / stage.memory_limit
    full = "" if stage.fits else " over"
    return join(
        tag("span", tag("span", style=f"width:{length(min(1.0, share))}"), class_=f"bar{full}", aria_hidden="true"),
        " ",
        figure(stage.peak_memory, gib(stage.peak_memory)),
        "/",
        figure(stage.memory_limit, gib(stage.memory_limit)),
        "" if stage.fits else " too full",
    )
