"""Plans on real clusters, priced by the real formulas, with what a search would say of them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.costs.plan import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Alternative, Certificate, Outcome, Prediction, References, SearchReport
from planner.simulate import predict
from planner.specs import catalog


@dataclass(frozen=True)
class Case:
    """What is planned, and how it can be planned."""

    cluster: Cluster
    model: Model
    job: Job

    def plan(self, stages: list[tuple[str, int]], *, tp: int = 8, dp: int = 1, recompute: str = "selective") -> Plan:
        """Return a plan whose stages are (group, layers)."""
        made: list[Stage] = []
        for group, layers in stages:
            first = made[-1].last_layer + 1 if made else 0
            strategy = Strategy(degrees=(("tp", tp),), sequence_parallel=True)
            made.append(
                Stage(
                    group=group,
                    first_layer=first,
                    last_layer=first + layers - 1,
                    strategy=strategy,
                    recompute=recompute,
                )
            )
        per_replica = self.job.global_batch // dp
        return Plan(
            stages=tuple(made),
            schedule="1f1b",
            num_replicas=dp,
            micro_batch=1,
            num_microbatches=per_replica,
            zero_stage=1,
        )

    def predicted(self, plan: Plan) -> Prediction:
        """Return time and memory of `plan`."""
        framework = catalog.framework(self.job.framework)
        costs = plan_cost(plan, self.cluster, self.model, self.job, framework)
        return predict(plan, costs, self.cluster, self.model, self.job)

    def outcome(self, plan: Plan, others: tuple[Plan, ...] = (), status: str = "within_gap") -> Outcome:
        """Return what a search that chose `plan` over `others` says; bound and references are made up."""
        prediction = self.predicted(plan)
        time = prediction.step_time
        return Outcome(
            plan=plan,
            prediction=prediction,
            certificate=Certificate(objective=time, lower_bound=0.992 * time, replay_lower_bound=0.95 * time),
            search=SearchReport(
                status=status, seconds=1.25, subproblems=24961, pruned=24938, solved=23, rejections=(("memory", 9),)
            ),
            alternatives=tuple(
                Alternative(
                    plan=other,
                    prediction=self.predicted(other),
                    objective=time,
                    lost_because="its stages exchange more, and nothing hides what they wait for each other",
                )
                for other in others
            ),
            references=References(
                flops_step_time=0.4 * time,
                homogeneous_step_time=0.97 * time,
                homogeneous_reference="relaxed",
                whole_layer_ceiling=0.981,
            ),
        )
