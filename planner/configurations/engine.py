"""Configurations through their form: recognised, read, held to its rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.configurations.base import Form, Rule
from planner.domain.configuration import ERROR, WARNING, Configuration, Finding, Setting, Spot
from planner.errors import SpecError

PLAN = "plan"
"""Kind of plan files."""
PROSE = (".md", ".mdx", ".markdown", ".rst", ".ipynb", ".html")
"""Endings of texts that quote configurations, and are none."""


def recognise(forms: Sequence[Form], text: str, name: str) -> Form | None:
    """Return the form of a text, by what is in it and by its file's name; None if it is of no known kind."""
    if name.lower().endswith(PROSE):
        return None
    return next((form for form in forms if form.recognises(text, name)), None)


def form_of(forms: Sequence[Form], text: str, name: str, kind: str | None = None) -> Form | None:
    """Return the form of a configuration, or None if the text is a plan file or of no known kind.

    Args:
        forms: that are known.
        text: what the file says.
        name: of the file.
        kind: name of the form, or ``plan``, where the user says it.

    Raises:
        SpecError: `kind` is neither.
    """
    if kind is not None:
        return form_named(forms, kind)
    return None if "format_version" in text else recognise(forms, text, name)


def form_named(forms: Sequence[Form], kind: str) -> Form | None:
    """Return the form called `kind`, None for ``plan``.

    Raises:
        SpecError: there is none.
    """
    found = {form.name: form for form in forms}
    if kind != PLAN and kind not in found:
        raise SpecError.of("--from", f"is {kind!r}; choose one of {', '.join((PLAN, *found))}")
    return found.get(kind)


def broken(form: Form, configuration: Configuration) -> tuple[Finding, ...]:
    """Return what reading found and what breaks the rules of the configuration's form, in the order of the text."""
    found = [*configuration.findings]
    for rule in form.rules:
        if applies(rule, configuration.version):
            found += _findings(rule, configuration)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.spot.line, one.spot.column, one.code)))


def applies(rule: Rule, version: str) -> bool:
    """Return whether a rule holds for a version of its framework; for the newest where none is given."""
    if not version:
        return not rule.until
    at = numbers(version)
    return (not rule.since or at >= numbers(rule.since)) and (not rule.until or at < numbers(rule.until))


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, by which versions are compared."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version))


def _findings(rule: Rule, configuration: Configuration) -> Iterator[Finding]:
    found = tuple(rule.check(configuration))
    sure = {message for _, message in rule.check(_opened(configuration))} if found and configuration.doubtful else None
    for key, message in found:
        rests = rule.severity == ERROR and sure is not None and message not in sure
        yield Finding(
            code=rule.code,
            severity=WARNING if rests else rule.severity,
            spot=configuration.spot(key),
            key=configuration.name(key),
            message=message,
        )


def _opened(configuration: Configuration) -> Configuration:
    """Return a configuration whose doubtful keys are written and left open."""
    none = {
        key: Setting(name=configuration.name(key), value=None, spot=Spot(configuration.origin))
        for key in configuration.doubtful
    }
    return replace(configuration, settings={**none, **configuration.settings}, doubtful=())
