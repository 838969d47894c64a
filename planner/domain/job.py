"""What is to be trained, how, and what the user wants of the plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A restriction of the search: ``subject operator value``."""

    subject: str
    """An axis or ``pp``, ``zero``, ``micro_batch``, ``recompute``, ``schedule``, ``group NAME`` or ``devices``."""
    operator: str
    """One of ``=``, ``<=``, ``>=``, ``!=``."""
    value: str
    text: str
    """As the user wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The training job and the demands on the plan. Every field has been resolved: no defaults are left open."""

    global_batch: int
    """[samples] of one optimizer step."""
    sequence: int
    """[tokens] of one sample."""
    precision: str
    """Of the matrix products: ``bf16``, ``fp16``, ``fp32`` or ``fp8``."""
    framework: str
    """Name of the profile of costs and memory."""
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
