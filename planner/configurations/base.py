"""What a kind of configuration is: how it is recognised and read, which rules hold of it, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.domain.configuration import ERROR, Configuration
from planner.specs.layout import Layout

Complaint = tuple[str, str]
"""(key of the setting, what is wrong with it, the legal values, and what would be right)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must hold of a configuration. It never fails on nonsense, and leaves to others what is theirs to say."""

    code: str
    """Stable: two or three letters of the framework and three digits. A code is never used again for another rule."""
    name: str
    """In a few words, as a title: ``Layers divide over pipeline stages``."""
    summary: str
    """What holds of a configuration that passes, as a formula where there is one."""
    why: str
    """What happens where it does not hold, when the framework notices, what to do: the text of ``planner explain``."""
    source: str
    """Where the rule is from: a file of the framework at a version, an issue."""
    check: Callable[[Configuration], Iterable[Complaint]]
    severity: str = ERROR
    since: str = ""
    """First version of the framework for which it holds; empty: all that are known."""
    until: str = ""
    """First version for which it no longer holds; empty: none."""
    caught: bool = True
    """Whether the framework itself refuses the configuration before it trains; if not, only we tell."""
    needs: tuple[str, ...] = ()
    """Keys without which it finds nothing, for forms that say a rule of several in their own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a configuration means, in the planner's words; what it does not say is None."""

    layout: Layout
    world: int | None = None
    """Ranks."""
    model: Mapping[str, Any] | None = None
    """A ``config.json`` that says what the configuration says of the model; None if it says nothing."""
    precision: str | None = None
    assumed: tuple[str, ...] = ()
    """What was assumed or left out on the way, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A kind of configuration."""

    name: str
    """As in ``--from NAME``."""
    summary: str
    """One line for listings."""
    framework: str
    """Profile of costs and memory that predicts it."""
    recognises: Callable[[str, str], bool]
    """(text, file name) -> whether it plainly is of this kind."""
    read: Callable[[str, str], Configuration]
    """(text, file name) -> what it says; raises `planner.errors.SpecError` only if nothing can be read at all."""
    rules: tuple[Rule, ...]
    setup: Callable[[Configuration], Setup]
    """What a configuration without errors means; raises `planner.errors.SpecError` for what no plan can say."""
    fills_cluster: Callable[[Configuration], bool] = lambda _: False
    """Whether it runs on all ranks that there are: the number of its replicas is written nowhere."""
