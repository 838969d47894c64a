"""The page as a whole: its sections in the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import planner
from planner.report.page.alternatives import alternatives
from planner.report.page.cluster import cluster
from planner.report.page.headline import headline, stages
from planner.report.page.inputs import certificate, inputs
from planner.report.page.markup import Markup, join, tag, void
from planner.report.page.memory import memory
from planner.report.page.subject import Subject
from planner.report.page.time import step
from planner.report.page.timeline import timeline
from planner.report.to_json import plain
from planner.units import KIB

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What the page may load: nothing; browsers enforce it."""
MOST_EMBEDDED = 256 * KIB
"""[characters] of the embedded document, beyond which the plan files that a search found are left out of it: each
repeats the cluster, with all that was measured of it."""
SCRIPTS = ("figures.js", "timeline.js", "tips.js")
"""In their order."""
SECTIONS = (
    ("stages", "Stages", stages),
    ("cluster", "Where it runs", cluster),
    ("timeline", "One step", timeline),
    ("time", "Where a step goes", step),
    ("memory", "Memory", memory),
    ("alternatives", "Alternatives", alternatives),
    ("proof", "Proof", certificate),
    ("inputs", "Inputs", inputs),
)
"""Anchor, title and content of each section, in their order."""


def page(about: Subject) -> str:
    """Return the page: one file, complete in itself."""
    title = f"{about.model.name} on {about.cluster.name}"
    shown = [(anchor, name, made) for anchor, name, make in SECTIONS if (made := make(about))]
    links = [tag("a", name, href=f"#{anchor}") for anchor, name, _ in shown]
    body = tag(
        "body",
        tag("a", "Skip to the plan", href="#plan", class_="skip"),
        tag("nav", tag("b", "planner"), *links, aria_label="Sections"),
        tag(
            "main",
            headline(about, title),
            *(_section(anchor, name, made) for anchor, name, made in shown),
            id="plan",
        ),
        tag("footer", f"Made by planner {planner.__version__}. Everything on this page is in this file."),
        tag("script", Markup(_embedded(about)), type="application/json", id="document"),
        *(tag("script", Markup(_asset(name))) for name in SCRIPTS),
    )
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=POLICY),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} - plan"),
        tag("style", Markup(_asset("page.css"))),
    )
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), "\n")


def _section(anchor: str, name: str, made: Markup) -> Markup:
    return tag("section", tag("h2", name, id=f"{anchor}-title"), made, id=anchor, aria_labelledby=f"{anchor}-title")


def _embedded(about: Subject) -> str:
    """Return what ``planner explain --format json`` prints, for scripts that read the page."""
    text = _dumped(about.document)
    search = about.document.get("search")
    if len(text) > MOST_EMBEDDED and search:
        others = [{**one, "plan": None} for one in search["alternatives"]]
        text = _dumped({**about.document, "search": {**search, "plan": None, "alternatives": others}})
    return text.replace("<", "\\u003c")  # nothing in it may end the script


def _dumped(document: Mapping[str, Any]) -> str:
    return json.dumps(plain(document), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
