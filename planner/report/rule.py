"""The story of a rule, as ``planner explain CODE`` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.report.layout import WIDTH, labelled


def rule_text(
    code: str,
    title: str,
    severity: str,
    of: Sequence[str],
    versions: str,
    source: str,
    summary: str,
    why: str,
    *,
    caught: bool,
    width: int = WIDTH,
) -> str:
    """Return a page about a rule: what holds, why, when, and where it is from."""
    noticed = f"{of[0]} itself refuses it" if caught else f"{of[0]} does not notice by itself"
    lines = [f"{code}: {title} ({severity})"]
    lines += labelled("holds", summary, width)
    lines += labelled("why", why, width)
    if of[0] != "plan":
        lines += labelled("versions", f"{of[0]} {versions}; {noticed}", width)
    if of[1:]:
        lines += labelled("also", f"holds for {', '.join(of[1:])}", width)
    if source:
        lines += labelled("source", source, width)
    return "\n".join(lines) + "\n"


def rule_document(
    code: str,
    title: str,
    severity: str,
    of: Sequence[str],
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
        "of": of[0],
        "also_of": list(of[1:]),
        "versions": versions or None,
        "source": source or None,
        "summary": summary,
        "why": why,
        "caught_by_framework": caught if of[0] != "plan" else None,
    }
