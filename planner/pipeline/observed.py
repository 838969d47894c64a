"""What happens in one step of a plan, to be looked at."""

from __future__ import annotations

from collections.abc import Iterator

from planner.costs import plan_cost
from planner.costs.traffic import handed_bytes, plan_traffic
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.report.chakra import Sizes, chakra_traces
from planner.simulate import Timeline, timeline
from planner.specs.calibration import framework_on


def observe(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Timeline:
    """Return the events of one step of a plan that can be priced, as `planner.pipeline.judge` tells."""
    return timeline(plan, plan_cost(plan, cluster, model, job, framework_on(cluster, job.framework)))


def traces(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the Chakra execution traces of a step.

    Raises:
        SpecError: they cannot tell of the plan, or would be too long.

    """
    from planner.placement import place

    parts = (plan, cluster, model, job, framework_on(cluster, job.framework))
    costs = plan_cost(*parts)
    sizes = Sizes(handed=handed_bytes(*parts), rings=plan_traffic(*parts)[0].rings, blocking=costs.blocking)
    yield from chakra_traces(plan, timeline(plan, costs), place(plan, cluster, model, job), sizes)
