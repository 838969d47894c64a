"""The story of a rule, as ``planner explain CODE`` tells it."""

from __future__ import annotations

from typing import Any

from planner.domain.configuration import Story
from planner.report.layout import WIDTH, labelled


def rule_text(story: Story, width: int = WIDTH) -> str:
    """Return a page about a rule: what holds, why, when, and where it is from."""
    first, *others = story.of
    noticed = f"{first} itself refuses it" if story.caught else f"{first} does not notice by itself"
    lines = [f"{story.code}: {story.title} ({story.severity})"]
    lines += labelled("holds", story.summary, width)
    lines += labelled("why", story.why, width)
    if first != "plan":
        lines += labelled("versions", f"{first} {story.versions}; {noticed}", width)
    if others:
        lines += labelled("also", f"holds for {', '.join(others)}", width)
    if story.source:
        lines += labelled("source", story.source, width)
    return "\n".join(lines) + "\n"


def rule_document(story: Story) -> dict[str, Any]:
    """Return the same as plain data."""
    first, *others = story.of
    return {
        "format_version": "1.0",
        "code": story.code,
        "title": story.title,
        "severity": story.severity,
        "of": first,
        "also_of": others,
        "versions": story.versions or None,
        "source": story.source or None,
        "summary": story.summary,
        "why": story.why,
        "caught_by_framework": story.caught if first != "plan" else None,
    }
