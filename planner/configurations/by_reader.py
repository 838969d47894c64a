"""Rules that a reader itself applies: they find nothing more, and stand among the rules for their stories."""

from __future__ import annotations

from collections.abc import Iterable

from planner.configurations.base import Complaint, Rule
from planner.domain.configuration import ERROR, Configuration


def by_the_reader(
    code: str, name: str, summary: str, why: str, *, source: str, severity: str = ERROR, caught: bool = True
) -> Rule:
    """Return a rule whose findings the reader has made already."""
    return Rule(
        code=code,
        name=name,
        summary=summary,
        why=why,
        source=source,
        check=_nothing,
        severity=severity,
        caught=caught,
    )


def _nothing(_: Configuration) -> Iterable[Complaint]:
    return ()
