"""The whole flow: specs in, a proved plan out; and what else can be asked of a plan."""

from planner.domain.progress import Reporter
from planner.pipeline.judge import judge, placed, predict_plan, runs_on
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
