"""What torchtitan refuses, and what hurts, by hundreds of the codes."""

from __future__ import annotations

from planner.configurations.base import Rule
from planner.configurations.forms.torchtitan.rules import (
    batch,
    experts,
    memory,
    mesh,
    modules,
    reading,
    sequence,
    stages,
)

RULES: tuple[Rule, ...] = (
    *reading.RULES,
    *mesh.RULES,
    *stages.RULES,
    *modules.RULES,
    *batch.RULES,
    *sequence.RULES,
    *experts.RULES,
    *memory.RULES,
)
