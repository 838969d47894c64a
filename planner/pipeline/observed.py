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
from planner.simulate.timeline import num_passes
from planner.specs.calibration import framework_on

AT_A_GLANCE = 16_384
"""Passes of a step up to which it takes no time that a user would notice to look at all of them."""


def observe(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Timeline:
    """Return the events of one step of a plan that can be priced, as `planner.pipeline.judge` tells."""
    return timeline(plan, plan_cost(plan, cluster, model, job, framework_on(cluster, job.framework)))


def glance(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Timeline | None:
    """Return what `observe` does for what is shown beside a prediction.

    There is nothing to be seen where a plan is a single stage; of a step of very many passes there is nothing either,
    for nobody should wait for a drawing that was not asked for.
    """
    if len(plan.all_stages) == 1 or num_passes(plan) > AT_A_GLANCE:
        return None
    return observe(plan, cluster, model, job)


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
