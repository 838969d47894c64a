"""The ways in which the planner can fail, and what each means.

PlannerError
  - SpecError          wrong input: one or more problems, each with its place (exit 2)
  - NoFeasiblePlan     proved: no plan exists under the given limits (exit 3)
  - NoPlanInTime       not proved: the limit on time ran out before a plan was found (exit 4)
  - CannotExpress      a target of ``planner export`` has no way to say what the plan says (exit 5)

Anything else that is raised is a bug of the planner (exit 70).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where it stands, and what is wrong and what would be right."""

    place: str
    """File, line and key, as in ``cluster.yaml:12 groups[0].device``; empty where there is none."""
    message: str
    """One sentence: what is wrong, and what would be right."""
    code: str = ""
    """Of the rule that is broken, as in ``planner explain PL108``; empty where it is no rule's."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.place}: {self.message}" if self.place else self.message


class PlannerError(Exception):
    """The base of every failure that a user can cause or meet."""


class SpecError(PlannerError):
    """The input cannot be used; all problems found are listed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep `problems`, at least one."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(cls, place: str, message: str) -> SpecError:
        """Return the error of a single problem."""
        return cls([Problem(place, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """By how much the plan that comes closest to fitting misses."""

    missing_bytes: float
    needed_bytes: float
    """Of the fullest device."""
    limit_bytes: float
    """Device memory less the head-room."""
    stage: int
    """Counted from 0."""
    num_stages: int
    group: str
    description: str
    """The plan, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A change that would make a plan fit."""

    change: str
    """What to change, as it would be typed where that is possible."""
    effect: str
    """What comes of it."""
    step_time: float
    """[s] of the plan that becomes possible."""
    peak_memory: float
    """[bytes] of its fullest device."""
    slower_by: float | None = None
    """[-] of its time per token, against the plan that does not fit; None where there was no plan."""
    is_rough: bool = False
    """Whether the time is that of a good plan after the change, not of the best: the best one takes no longer."""


class NoFeasiblePlan(PlannerError):
    """Proved: nothing in the search space satisfies the limits."""

    def __init__(
        self,
        message: str,
        rejections: Mapping[str, int] | None = None,
        shortage: Shortage | None = None,
        repairs: Sequence[Repair] = (),
    ) -> None:
        """Keep the counted `rejections` (reason -> number of candidates), the miss, and repairs, cheapest first."""
        self.rejections = dict(rejections or {})
        self.shortage = shortage
        self.repairs = tuple(repairs)
        super().__init__(message)


class NoPlanInTime(PlannerError):
    """No plan was found before the limit on time; one may exist."""

    def __init__(self, message: str, lower_bound: float) -> None:
        """Keep `lower_bound`, [s] below which no plan's step time can lie."""
        self.lower_bound = lower_bound
        super().__init__(message)


class CannotExpress(PlannerError):
    """A target has no way to say what a plan says; nothing is rounded to make it fit."""

    def __init__(self, target: str, reasons: Sequence[str], nearest: str = "") -> None:
        """Keep the `target`, the `reasons`, at least one, and the `nearest` plan that it could carry, if known."""
        self.target = target
        self.reasons = tuple(reasons)
        self.nearest = nearest
        super().__init__(f"the plan cannot be written for {target}: {'; '.join(self.reasons)}")
