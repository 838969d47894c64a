"""The whole flow: specs in, a proved plan out; and what else can be asked of a plan.

Names are imported where they are first used, so that a file whose text alone is judged loads no cost model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.domain.progress import Reporter
    from planner.pipeline.judging import judge, placed, predict_plan, runs_on
    from planner.pipeline.layout import plan_from_layout
    from planner.pipeline.misfit import find_repairs
    from planner.pipeline.plan import make_plan
    from planner.pipeline.why import WhyNot, why_not

__all__ = [
    "Reporter",
    "WhyNot",
    "find_repairs",
    "judge",
    "make_plan",
    "placed",
    "plan_from_layout",
    "predict_plan",
    "runs_on",
    "why_not",
]
_HOMES = {
    "Reporter": "planner.domain.progress",
    "WhyNot": "planner.pipeline.why",
    "find_repairs": "planner.pipeline.misfit",
    "judge": "planner.pipeline.judging",
    "make_plan": "planner.pipeline.plan",
    "placed": "planner.pipeline.judging",
    "plan_from_layout": "planner.pipeline.layout",
    "predict_plan": "planner.pipeline.judging",
    "runs_on": "planner.pipeline.judging",
    "why_not": "planner.pipeline.why",
}
"""Name -> module that has it."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
