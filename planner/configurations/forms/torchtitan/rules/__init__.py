"""What torchtitan refuses, and what hurts, by hundreds of the codes."""

from __future__ import annotations

from planner.configurations.base import Rule

RULES: tuple[Rule, ...] = ()
