"""From a launch configuration to what it means on a cluster: a plan that is judged like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.configurations import Setup
from planner.domain.cluster import Cluster
from planner.domain.model import Model
from planner.errors import Problem, SpecError
from planner.importers import huggingface
from planner.pipeline.groups import untold
from planner.pipeline.layout import plan_from_layout
from planner.specs.job import read_job
from planner.specs.plan import PlanFile, unwritten

IMPOSSIBLE = "PL002"
"""Code of a layout that cannot be on the cluster at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A configuration on a cluster."""

    file: PlanFile
    notes: tuple[str, ...]
    """What was assumed, in sentences."""


def on_cluster(
    setup: Setup,
    origin: str,
    framework: str,
    cluster: Cluster,
    model: Model | None = None,
    given: Mapping[str, object] | None = None,
) -> Configured:
    """Return the plan that a configuration means on `cluster`.

    Args:
        setup: what it says.
        origin: name of its file.
        framework: profile of costs and memory.
        cluster: where it shall run.
        model: what is trained; by default what the configuration says.
        given: job key -> value of what the user says of the job; it wins.

    Raises:
        SpecError: the model or the job is missing or wrong, or the layout is impossible.
    """
    notes = [*setup.assumed]
    model = model or model_of(setup, origin)
    job, defaults = read_job(None, {**_job(setup, framework), **(given or {})}, model, cluster)
    notes += [f"assumed: {text}" for text in defaults if not text.startswith(("headroom", "gap"))]
    layout = setup.layout
    width = layout.tp * layout.cp * layout.pp
    if layout.dp is None and setup.world is not None:
        layout = replace(layout, dp=max(1, setup.world // width))
    try:
        plan, job = plan_from_layout(layout, cluster, model, job)
    except SpecError as error:
        problems = [Problem(origin, problem.message, IMPOSSIBLE) for problem in error.problems]
        raise SpecError(problems) from None
    if plan.num_devices < cluster.num_devices:
        notes.append(f"it uses {plan.num_devices:,} of the {cluster.num_devices:,} devices of {cluster.name}")
    notes += filter(None, [untold(layout, cluster)])
    file = unwritten(plan, cluster, model, job, origin)
    return Configured(file=file, notes=tuple(notes))


def model_of(setup: Setup, origin: str) -> Model:
    """Return the model that a configuration trains.

    Raises:
        SpecError: it does not say which.
    """
    if setup.model is None:
        raise SpecError.of(origin, "does not say which model it trains; add --model")
    return huggingface.from_config(setup.model, origin, where=lambda path: f"{origin} {'.'.join(path)}")


def _job(setup: Setup, framework: str) -> dict[str, object]:
    """Return what a configuration says of the job."""
    found = {
        "global_batch": setup.layout.gbs,
        "sequence_length": setup.layout.seq,
        "precision": setup.precision,
        "framework": framework,
    }
    return {key: value for key, value in found.items() if value is not None}
