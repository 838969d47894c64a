"""Predict and judge a given plan; nothing recorded in a file is trusted."""

from __future__ import annotations

from planner.checks import Context, run_checks
from planner.checks import runs_on as frameworks_that_run
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.errors import Problem
from planner.simulate import predict
from planner.specs.catalog import framework as find_framework
from planner.specs.catalog import frameworks
from planner.specs.plan import PlanFile

TOLERANCE = 1e-6
"""[-] by which recorded figures may differ from recomputed ones."""


def predict_plan(plan: Plan, cluster: Cluster, model: Model, job: Job) -> tuple[Prediction, tuple[Problem, ...]]:
    """Return the prediction of a plan that is sound, and its problems (that it does not fit is one)."""
    costs = plan_cost(plan, cluster, model, job, find_framework(job.framework))
    problems = run_checks(Context(plan=plan, cluster=cluster, model=model, job=job, stages=costs.stages))
    return predict(plan, costs, cluster, model, job), problems


def judge(
    file: PlanFile, cluster: Cluster | None = None
) -> tuple[Prediction | None, tuple[Problem, ...], tuple[str, ...]]:
    """Return the prediction of a plan file, its problems, and notes; on another `cluster` if one is given.

    There is no prediction where the plan is not sound enough to be priced.
    """
    where = cluster or file.cluster
    notes = [
        f"{part} was changed after the plan was made: what the file says is proved is not about it"
        for part in file.edited
    ]
    problems = run_checks(Context(plan=file.plan, cluster=where, model=file.model, job=file.job))
    if problems:
        return None, problems, tuple(notes)
    prediction, problems = predict_plan(file.plan, where, file.model, file.job)
    recorded = file.figures
    if cluster is None and recorded and abs(recorded.step_time / prediction.step_time - 1) > TOLERANCE:
        notes.append(
            f"the file records a step time of {recorded.step_time:.4g} s (by {file.made_by});"
            f" it is now predicted to be {prediction.step_time:.4g} s"
        )
    return prediction, problems, tuple(notes)


def runs_on(plan: Plan, cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the frameworks that can run `plan`."""
    return frameworks_that_run(plan, frameworks(), cluster)
