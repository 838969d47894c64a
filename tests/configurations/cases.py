"""What the tests of every kind of configuration ask: which codes a text breaks, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from planner.configurations import Form
from planner.configurations.engine import broken
from planner.configurations.nested import Table
from planner.domain.configuration import ERROR, Configuration, Finding, Setting, Spot


def read(form: Form, text: str, name: str, *, world: int | None = None, version: str = "") -> Configuration:
    """Return a configuration, started by so many processes, of a version of its framework."""
    found = replace(form.read(text, name), version=version)
    if world is None:
        return found
    return replace(found, world=Setting(name="world", value=world, spot=Spot("the launcher")))


def findings(form: Form, text: str, name: str, *, world: int | None = None, version: str = "") -> tuple[Finding, ...]:
    """Return what is found in a text."""
    return broken(form, read(form, text, name, world=world, version=version))


def of(found: tuple[Finding, ...], code: str) -> Finding:
    """Return the only finding of a code."""
    (one,) = [finding for finding in found if finding.code == code]
    return one


def errors(found: tuple[Finding, ...]) -> list[str]:
    """Return the codes of errors."""
    return [finding.code for finding in found if finding.severity == ERROR]


NONSENSE: tuple[Any, ...] = ([], {}, "x", "", -1, 0, 1.5, True, "auto", None, [1], {"a": {"b": [None]}}, 10**30)
"""Values of every kind."""


def with_nonsense(good: Mapping[str, Any], tables: Mapping[str, Table], value: Any) -> Iterator[dict[str, Any]]:
    """Yield a good configuration with `value` at each key of each table, and instead of each table."""
    for block, known in tables.items():
        for key in ("", *known.kinds):
            found = deepcopy(dict(good))
            at = found
            *path, last = [part for part in (*block.split("."), key) if part] or ["x"]
            for part in path:
                at[part] = at[part] if isinstance(at.get(part), dict) else {}
                at = at[part]
            at[last] = value
            yield found
