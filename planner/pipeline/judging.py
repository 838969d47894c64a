"""Predict and judge a given plan; nothing recorded in a file is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.checks import Context, refusals, run_checks
from planner.checks import runs_on as frameworks_that_run
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.errors import Problem, SpecError
from planner.pipeline.confidence import with_confidence
from planner.pipeline.groups import stand_ins
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework
from planner.specs.catalog import frameworks
from planner.specs.plan import PlanFile

SOUND = ("layers", "batch", "schedule", "order", "degrees", "devices", "precision", "profile")
"""Checks without which a plan has no meaning that could be priced."""
TOLERANCE = 1e-6
"""[-] by which recorded figures may differ from recomputed ones."""


def predict_plan(plan: Plan, cluster: Cluster, model: Model, job: Job) -> tuple[Prediction, tuple[Problem, ...]]:
    """Return the prediction of a plan, and its problems (that it does not fit is one).

    Raises:
        SpecError: the plan is not sound: layers are missing, devices or degrees are impossible, the batch differs.

    """
    unpriceable = run_checks(Context(plan=plan, cluster=cluster, model=model, job=job), names=SOUND)
    if unpriceable:
        raise SpecError(unpriceable)
    costs = plan_cost(plan, cluster, model, job, framework_on(cluster, job.framework))
    problems = run_checks(Context(plan=plan, cluster=cluster, model=model, job=job, stages=costs.all_stages))
    return with_confidence(predict(plan, costs, cluster, model, job), plan, cluster, model, job), problems


def judge(
    file: PlanFile, cluster: Cluster | None = None
) -> tuple[Prediction | None, tuple[Problem, ...], tuple[str, ...]]:
    """Return the prediction of a plan file, its problems, and notes; on another `cluster` if one is given.

    There is no prediction where the plan is not sound enough to be priced.
    """
    plan, where = placed(file, cluster)
    notes = [f"{part} was changed after the plan was made; what was proved is not about it" for part in file.edited]
    notes += [
        f"{where.name} has no group {mine.name}; the stages on it ({mine.device.name}) are judged on {other.name}"
        f" ({other.device.name})"
        for mine, other in stand_ins(file.plan, file.cluster, where)
    ]
    problems = run_checks(Context(plan=plan, cluster=where, model=file.model, job=file.job), names=SOUND)
    if problems:
        return None, problems, tuple(notes)
    prediction, problems = predict_plan(plan, where, file.model, file.job)
    if file.job.target:
        reasons = refusals(plan, find_framework(file.job.target), where)
        problems = (*problems, *(Problem("job.for", reason, "PL110") for reason in reasons))
    recorded = file.figures
    if cluster is None and recorded and abs(recorded.step_time / prediction.step_time - 1) > TOLERANCE:
        notes.append(
            f"the file records a step time of {recorded.step_time:.4g} s (by {file.made_by});"
            f" it is now predicted to be {prediction.step_time:.4g} s"
        )
    return prediction, problems, tuple(notes)


def placed(file: PlanFile, cluster: Cluster | None) -> tuple[Plan, Cluster]:
    """Return the plan of a file and where it is to run: on `cluster` if one is given."""
    return (file.plan, file.cluster) if cluster is None else (_moved(file.plan, file.cluster, cluster), cluster)


def _moved(plan: Plan, old: Cluster, new: Cluster) -> Plan:
    """Return the plan on another cluster: where it names groups that are not there, others stand for them."""
    names = {mine.name: other.name for mine, other in stand_ins(plan, old, new)}
    return _renamed(replace(plan, other_pipelines=tuple(_renamed(one, names) for one in plan.other_pipelines)), names)


def _renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    """Return the plan with the stages of its first kind on the groups that stand for theirs."""
    stages = (replace(stage, group=names.get(stage.group, stage.group)) for stage in plan.stages)
    return replace(plan, stages=tuple(stages))


def runs_on(plan: Plan, cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the frameworks that can run `plan`."""
    return frameworks_that_run(plan, frameworks(), cluster)
