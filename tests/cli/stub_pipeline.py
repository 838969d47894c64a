"""A pipeline of known answers, to test what the command line makes of each."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from typer.testing import Result

import planner.pipeline
from planner.costs.plan import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Certificate, Outcome, Prediction, SearchReport
from planner.errors import Problem, Repair
from planner.simulate import predict
from planner.specs import catalog

Planner = Callable[..., Result]
"""Runs the command line with the given words."""


@dataclass(frozen=True)
class WhyNot:
    """An answer as the pipeline gives it."""

    constraint: Constraint
    outcome: Outcome | None
    infeasible: str
    slower_by: float
    differences: tuple[tuple[str, float, float], ...]


class Pipeline(types.ModuleType):
    """Stands for ``planner.pipeline``; a test sets `failure`, `status`, `problems` or `notes`."""

    def __init__(self) -> None:
        """Answer well."""
        super().__init__("planner.pipeline")
        self.__path__ = planner.pipeline.__path__  # what is not replaced here is real
        self.failure: BaseException | None = None
        self.status = "optimal"
        self.problems: tuple[Problem, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.jobs: list[Job] = []
        """The jobs that were planned or predicted."""
        self.references: list[bool] = []

    def make_plan(
        self, cluster: Cluster, model: Model, job: Job, *, references: bool = True, reporter: Any = None
    ) -> Outcome:
        """Return a plan of one stage on the first group, or fail."""
        del reporter
        self.jobs.append(job)
        self.references.append(references)
        if self.failure:
            raise self.failure
        plan = one_stage(cluster, model, job, tp=cluster.groups[0].devices_per_node)
        prediction = predicted(plan, cluster, model, job)
        time = prediction.step_time
        return Outcome(
            plan=plan,
            prediction=prediction,
            certificate=Certificate(objective=time, lower_bound=time, replay_lower_bound=time),
            search=SearchReport(
                status=self.status, seconds=0.5, subproblems=2, pruned=1, solved=1, rejections=(("memory", 3),)
            ),
            alternatives=(),
        )

    def predict_plan(
        self, plan: Plan, cluster: Cluster, model: Model, job: Job
    ) -> tuple[Prediction, tuple[Problem, ...]]:
        """Return the real prediction and the test's problems."""
        self.jobs.append(job)
        return predicted(plan, cluster, model, job), self.problems

    def plan_from_layout(self, layout: Any, cluster: Cluster, model: Model, job: Job) -> tuple[Plan, Job]:
        """Return one stage with the layout's tensor degree."""
        job = replace(job, global_batch=layout.gbs or job.global_batch, sequence=layout.seq or job.sequence)
        return one_stage(cluster, model, job, tp=layout.tp), job

    def judge(
        self, plan_file: Any, cluster: Cluster | None = None
    ) -> tuple[Prediction | None, tuple[Problem, ...], tuple[str, ...]]:
        """Return the real prediction and the test's problems and notes."""
        at = cluster or plan_file.cluster
        return predicted(plan_file.plan, at, plan_file.model, plan_file.job), self.problems, self.notes

    def placed(self, plan_file: Any, cluster: Cluster | None) -> tuple[Plan, Cluster]:
        """Return the plan as it is."""
        return plan_file.plan, cluster or plan_file.cluster

    def find_repairs(
        self, plan: Plan, cluster: Cluster, model: Model, job: Job, prediction: Prediction
    ) -> tuple[Repair, ...]:
        """Return one repair of what does not fit."""
        del plan, cluster, model, job
        repair = Repair(change="micro-batch 1", effect="", step_time=2.0, peak_memory=1e9, slower_by=0.25)
        return () if prediction.fits else (repair,)

    def runs_on(self, plan: Plan, cluster: Cluster) -> tuple[str, ...]:
        """Return one framework."""
        del plan, cluster
        return ("megatron",)

    def why_not(self, plan_file: Any, constraint_text: str, reporter: Any = None) -> WhyNot:
        """Return that there is no such plan."""
        del reporter
        constraint = Constraint(subject="tp", operator="=", value="8", text=constraint_text)
        return WhyNot(constraint, None, f"nothing fits {plan_file.model.name}", 0.0, ())


def one_stage(cluster: Cluster, model: Model, job: Job, *, tp: int) -> Plan:
    stage = Stage(
        group=cluster.groups[0].name,
        first_layer=0,
        last_layer=model.num_layers - 1,
        strategy=Strategy(degrees=(("tp", tp),), sequence_parallel=True),
        recompute="selective",
    )
    return Plan(
        stages=(stage,),
        schedule="1f1b",
        num_replicas=1,
        micro_batch=1,
        num_microbatches=job.global_batch,
        zero_stage=1,
    )


def predicted(plan: Plan, cluster: Cluster, model: Model, job: Job) -> Prediction:
    costs = plan_cost(plan, cluster, model, job, catalog.framework(job.framework))
    return predict(plan, costs, cluster, model, job)
