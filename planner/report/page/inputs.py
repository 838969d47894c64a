"""What was proved of the plan, and what it was made of: enough to make it again."""

from __future__ import annotations

import shlex

from planner.domain.plan import SEARCHED
from planner.report.figures import percent, seconds
from planner.report.page.markup import Markup, figure, join, tag
from planner.report.page.markup import percent as length
from planner.report.page.subject import Subject
from planner.report.plan import proof, search
from planner.units import KIB

MOST_TEXT = 256 * KIB
"""[characters] of a plan file that is shown; a page is no place for more."""


def certificate(about: Subject) -> Markup:
    """Return what was proved, and how the search went where one was made."""
    found, made = about.certificate, about.found
    how = tag("p", "This search: ", search(made.search), ".", class_="note") if made else ""
    if found is None:
        text = "Nothing is proved of this plan: it was named and not searched, or its file was changed afterwards."
        return join(tag("p", text), how)
    ordered = about.plan.schedule == SEARCHED
    rows = (
        (
            "no order of these stages' passes takes less than" if ordered else "no plan can be faster than",
            found.lower_bound,
        ),
        ("no replay can end before", 0.0 if ordered else found.replay_lower_bound),
        ("this plan, in the same measure", found.objective),
        ("this plan, replayed", about.prediction.step_time),
    )
    most = max(time for _, time in rows)
    bars = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", figure(time, seconds(time)), class_="n"),
            tag(
                "td",
                tag("span", tag("span", style=f"width:{length(time / most)}"), class_="bar wide", aria_hidden="true"),
                class_="grow",
            ),
        )
        for name, time in rows
        if time > 0
    ]
    gap = join("Gap: ", tag("b", figure(found.gap, percent(found.gap))), ".")
    return join(
        tag("p", proof(found, of=about.plan).capitalize(), ". ", gap),
        tag("table", tag("caption", "What was proved, and what is predicted"), tag("tbody", *bars), class_="bars"),
        how,
    )


def inputs(about: Subject) -> Markup:
    """Return the commands that make this page and the plan file that they read."""
    name = shlex.quote(about.origin if about.origin != "<stdin>" else "plan.yaml")
    commands = "\n".join(
        (
            f"planner report {name} -o page.html",
            f"planner explain {name}",
            f"planner timeline {name} -o step.json",
        )
    )
    whole = about.text if len(about.text) <= MOST_TEXT else ""
    copy = tag("button", "Copy", type="button", data_copy="plan-text")
    file = (
        tag("details", tag("summary", "The plan file"), copy, tag("pre", whole, id="plan-text", tabindex="0"))
        if whole
        else tag("p", f"The plan file has {len(about.text):,} characters, too many for this page.")
    )
    return join(
        tag("p", "Save the plan file below under its name; cluster, model and job are part of it."),
        tag("p", "The first two search again."),
        tag("pre", commands, tabindex="0"),
        file,
    )
