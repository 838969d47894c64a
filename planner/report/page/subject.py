"""What a page is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Certificate, Outcome, Prediction
from planner.errors import Problem
from planner.simulate import Timeline

if TYPE_CHECKING:
    from planner.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A plan with everything that is known about it."""

    plan: Plan
    prediction: Prediction
    problems: tuple[Problem, ...]
    cluster: Cluster
    model: Model
    job: Job
    certificate: Certificate | None
    """What was proved; None if nothing was, or if the file was changed afterwards."""
    placed: Placement
    timeline: Timeline
    found: Outcome | None
    """What a search for the same job finds; None if none was made, or it found nothing."""
    document: Mapping[str, Any]
    """What ``planner explain --format json`` says of it."""
    text: str
    """The plan file."""
    origin: str
    """Its name."""
