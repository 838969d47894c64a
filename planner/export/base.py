"""What a target is: something that a plan is written for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.specs.plan import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A target. It never rounds: what it cannot express it refuses, with `planner.errors.CannotExpress`."""

    name: str
    """As in ``planner export PLAN --to NAME``."""
    summary: str
    """One line for listings."""
    text: Callable[[PlanFile], str]
    """The sound plan of a file, in the target's own form."""
    document: Callable[[PlanFile], dict[str, Any]] | None = None
    """The same as plain data, for JSON and YAML; None if the target has no other form than its own."""
