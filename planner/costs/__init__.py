"""Pure functions from layers, devices and links to seconds and bytes, each with its source."""

from planner.costs.plan import Hop, PlanCost, StageCost, plan_cost

__all__ = ["Hop", "PlanCost", "StageCost", "plan_cost"]
