"""The story of a rule, as ``planner explain CODE`` tells it."""

from __future__ import annotations

from typing import Any

from planner.report.layout import WIDTH, labelled


def rule_text(
    code: str,
    title: str,
    severity: str,
    of: str,
    versions: str,
    source: str,
    summary: str,
    why: str,
    *,
    caught: bool,
    width: int = WIDTH,
) -> str:
    """Return a page about a rule: what holds, why, when, and where it is from."""
    noticed = f"{of} itself refuses it" if caught else f"{of} does not notice by itself"
    lines = [f"{code}: {title} ({severity})"]
    lines += labelled("holds", summary, width)
    lines += labelled("why", why, width)
    if of != "plan":
        lines += labelled("versions", f"{of} {versions}; {noticed}", width)
    if source:
        lines += labelled("source", source, width)
    return "\n".join(lines) + "\n"


def rule_document(
    code: str,
    title: str,
    severity: str,
    of: str,
    versions: str,
    source: str,
    summary: str,
    why: str,
    *,
    caught: bool,
) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "format_version": "1.0",
        "code": code,
        "title": title,
        "severity": severity,
        "of": of,
        "versions": versions or None,
        "source": source or None,
        "summary": summary,
        "why": why,
        "caught_by_framework": caught if of != "plan" else None,
    }
