"""What happens in one step of a plan, to be looked at."""

from __future__ import annotations

from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.simulate import Timeline, timeline
from planner.specs.calibration import framework_on


def observe(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Timeline:
    """Return the events of one step of a plan that can be priced, as `planner.pipeline.judge` tells."""
    return timeline(plan, plan_cost(plan, cluster, model, job, framework_on(cluster, job.framework)))
