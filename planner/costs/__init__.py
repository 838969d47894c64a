"""Pure functions from layers, devices and links to seconds and bytes, each with its source."""

from planner.costs.plan import plan_cost
from planner.costs.priced import Hop, HostedCost, PlanCost, StageCost

__all__ = ["Hop", "HostedCost", "PlanCost", "StageCost", "plan_cost"]
