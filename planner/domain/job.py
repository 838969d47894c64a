"""What is to be trained, how, and what the user wants of the plan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.domain.optimizer import OptimizerRecipe

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
}

REPLICAS = ("equal", "alike", "unequal")
"""What replicas may be asked to be: the same in all, copies of one pipeline, or pipelines of several kinds."""
ANY_SCHEDULE = "any"
"""Asks for every schedule that trains the same, whether the framework runs it or not."""
EQUAL, ALIKE, UNEQUAL = ("equal", "alike"), ("alike",), ("unequal",)
"""Which of these words hold of a plan: copies of one pipeline may work on a micro-batch less, and split stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A restriction of the search: ``subject operator value``."""

    subject: str
    """An axis or ``pp``, ``vpp``, ``dp``, ``split``, ``zero``, ``micro_batch``, ``recompute``, ``schedule``,
    ``replicas``, ``group NAME`` or ``devices``."""
    operator: str
    """One of ``=``, ``<=``, ``>=``, ``!=``."""
    value: str
    text: str
    """As the user wrote it."""

    def admits(self, value: int | str) -> bool:
        """Tell whether `value` of the subject satisfies the constraint."""
        if self.subject == "schedule" and self.value == ANY_SCHEDULE:
            return True
        wanted: int | str = int(self.value) if isinstance(value, int) else self.value
        return bool(COMPARE[self.operator](value, wanted))

    def admits_replicas(self, words: tuple[str, ...]) -> bool:
        """Tell whether replicas of which `words` hold satisfy the constraint, if it is on them."""
        return self.subject != "replicas" or (self.value in words) == (self.operator == "=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The training job and the demands on the plan. Every field has been resolved: no defaults are left open."""

    global_batch: int
    """[samples] of one optimizer step."""
    sequence: int
    """[tokens] of one sample."""
    precision: str
    """Of the matrix products: a name of `planner.domain.precision.PRECISIONS`."""
    framework: str
    """Name of the profile of costs and memory."""
    optimizer: OptimizerRecipe | None = None
    """What the optimizer keeps and moves; None for what is usual with the framework."""
    target: str = ""
    """Framework that must be able to run the plan; empty if any plan will do."""
    headroom: float = 0.10
    """[-] share of the device memory that the plan leaves free."""
    gap: float = 0.01
    """[-] wanted distance between the plan and the proved bound."""
    time_limit: float = 0.0
    """[s] of search; zero for no limit."""
    constraints: tuple[Constraint, ...] = ()
    total_tokens: float = 0.0
    """[tokens] of the whole training; zero where it is not given."""

    @property
    def tokens_per_step(self) -> int:
        """[tokens] of one optimizer step."""
        return self.global_batch * self.sequence
