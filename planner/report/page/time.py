"""Where the time of a step goes."""

from __future__ import annotations

from planner.domain.prediction import busiest_stage
from planner.report.figures import percent, seconds, words
from planner.report.page.markup import Markup, figure, join, tag
from planner.report.page.markup import percent as length
from planner.report.page.subject import Subject
from planner.report.plan import NOTHING


def step(about: Subject) -> Markup:
    """Return a bar for each part of the step on its busiest stage, the largest first."""
    prediction = about.prediction
    busiest = busiest_stage(about.plan, prediction.stages)
    whose = f", on stage {busiest}, the busiest" if len(prediction.stages) > 1 else ""
    spent = [(name, time) for name, time in prediction.time if time > NOTHING * prediction.step_time]
    parts = sorted(spent, key=lambda part: -part[1])
    most = parts[0][1]
    rows = [
        tag(
            "tr",
            tag("th", words(name), scope="row"),
            tag("td", figure(time, seconds(time)), class_="n"),
            tag("td", percent(time / prediction.step_time), class_="n"),
            tag(
                "td",
                tag("span", tag("span", style=f"width:{length(time / most)}"), class_="bar wide", aria_hidden="true"),
                class_="grow",
            ),
        )
        for name, time in parts
    ]
    total = join("The parts add up to ", figure(prediction.step_time, seconds(prediction.step_time)))
    return join(
        tag("table", tag("caption", f"Of one step{whose}"), tag("tbody", *rows), class_="bars"),
        tag("p", total, "; a part counts as far as nothing hides it.", class_="note"),
    )
