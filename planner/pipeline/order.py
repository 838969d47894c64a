"""From a plan with a named schedule to the best order of its passes: the program finds it, the replay judges it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from planner.candidates.choices import divisors
from planner.checks import Context, run_checks
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.job import ANY_SCHEDULE, Job
from planner.domain.model import Model
from planner.domain.plan import SEARCHED, Plan
from planner.domain.prediction import Alternative, Certificate, Outcome, SearchReport
from planner.domain.progress import Reporter, Standing
from planner.errors import NoFeasiblePlan, NoPlanInTime, SpecError
from planner.pipeline.confidence import with_confidence
from planner.pipeline.finalists import Finalist, lost_because
from planner.pipeline.merging import whole_where_as_good
from planner.pipeline.placements import Trial, is_comparable, trials_of
from planner.schedules import SCHEDULES, rows
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework
from planner.units import NANOSECOND

if TYPE_CHECKING:
    from planner.program.order import Ordered

MOST_PASSES = 1000
"""F, I and W of all stages of a pipeline up to which an order is looked for."""
EFFORT = 30.0
"""What the solver spends on the order of a placement, in its deterministic measure."""
CLOSE = 1e-4
"""[-] gap below which an order is as good as the best."""
EXACT = 1e-6
"""[-] gap below which an order is called optimal."""
PLACE = "schedule = search"
"""Where the wish stands, for messages."""


def asks_for_order(job: Job) -> bool:
    """Return whether the job's constraints want the best order of passes."""
    return any(c.subject == "schedule" and c.operator == "=" and c.value == SEARCHED for c in job.constraints)


def for_stages(job: Job) -> Job:
    """Return the job of the search for stages: several, with any comparable schedule, and replicas that are alike.

    Raises:
        NoFeasiblePlan: the job is for a framework that has its own orders only, or asks for another schedule, too.

    """
    if job.target and SEARCHED not in find_framework(job.target).can.schedules:
        raise NoFeasiblePlan(
            f"{job.target} runs no order of passes but its own; --for torchtitan reads one from a file, and without"
            " --for any framework's costs will do",
            {},
        )
    on_schedule = [c for c in job.constraints if c.subject == "schedule"]
    asked = next(c for c in on_schedule if c.operator == "=" and c.value == SEARCHED)
    contrary = [c for c in on_schedule if not c.admits(SEARCHED)]
    if contrary:
        raise NoFeasiblePlan(f"no plan satisfies {asked.text!r} and {contrary[0].text!r} together", {})
    others = (listed.name for listed in SCHEDULES if not (listed.changes_semantics or is_comparable(listed)))
    needed = (
        ("pp", ">=", "2"),
        ("replicas", "=", "equal"),
        ("schedule", "=", ANY_SCHEDULE),
        *(("schedule", "!=", name) for name in others),
    )
    added = (replace(asked, subject=subject, operator=operator, value=value) for subject, operator, value in needed)
    return replace(job, constraints=(*(c for c in job.constraints if c != asked), *added))


def with_order(base: Outcome, cluster: Cluster, model: Model, job: Job, reporter: Reporter | None = None) -> Outcome:
    """Return the `base` plan with the best order of its passes, in one chunk a stage, two, or its own number.

    Raises:
        SpecError: there are too many passes.
        NoFeasiblePlan: the constraints leave no placement of chunks.

    """
    begun = time.monotonic()
    framework = framework_on(cluster, job.framework)
    trials = [trial for plan in _bases(base) for trial in trials_of(plan, cluster, model, job, framework)]
    if not trials:
        raise NoFeasiblePlan(
            f"{PLACE} has one chunk a stage, two, or those of the best named schedule; none finds room", {}
        )
    _refuse_large(trials)
    found, stopped = _found(trials, job, base, reporter or Reporter())
    best = min(found, key=lambda one: one.seconds)
    if best.seconds == float("inf"):
        raise NoPlanInTime("no order of passes was found in the time that there was; one may exist", best.bound)
    bound = min(one.bound for one in found) + framework.step_overhead
    costs = plan_cost(best.plan, cluster, model, job, framework)
    problems = run_checks(Context(plan=best.plan, cluster=cluster, model=model, job=job, stages=costs.all_stages))
    assert not problems, f"the order breaks a rule: {problems[0]}"
    prediction = with_confidence(predict(best.plan, costs, cluster, model, job), best.plan, cluster, model, job)
    lower = min(bound, prediction.step_time)
    certificate = Certificate(objective=prediction.step_time, lower_bound=lower, replay_lower_bound=lower)
    chosen = Finalist(plan=best.plan, objective=prediction.step_time, prediction=prediction)
    named = Alternative(
        plan=base.plan, prediction=base.prediction, objective=base.certificate.objective, lost_because=""
    )
    others = (replace(other, lost_because=_lost(chosen, other)) for other in (named, *base.alternatives))
    return replace(
        base,
        plan=best.plan,
        prediction=prediction,
        certificate=certificate,
        search=_report(base.search, certificate, stopped, len(found), time.monotonic() - begun),
        alternatives=tuple(others),
    )


def _bases(base: Outcome) -> list[Plan]:
    """Return the plans whose stages are tried: the best, the best replayed, and the best met with one chunk a stage."""
    met = (base.plan, *(other.plan for other in base.alternatives))
    quick = (o.plan for o in base.alternatives if o.prediction.step_time < base.prediction.step_time)
    whole = (plan for plan in met if plan.virtual_stages == 1)
    return list(dict.fromkeys([base.plan, *islice(quick, 1), *islice(whole, 1)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The best order of a placement."""

    plan: Plan
    seconds: float
    """[s] of its replayed step, without overhead."""
    bound: float
    """[s] below which no order's step lies."""


def _refuse_large(trials: list[Trial]) -> None:
    """Stop where there are too many passes to be ordered, whatever the placement."""
    least = min(trials, key=lambda trial: trial.shop.num_passes)
    number = least.shop.num_passes
    if number > MOST_PASSES:
        plan = least.plan
        raise SpecError.of(
            PLACE,
            f"the best plan has {plan.num_stages} stages and {plan.num_microbatches} micro-batches, {number:,} passes,"
            f" and orders are looked for up to {MOST_PASSES:,}; ask for fewer with {_fewer(plan, number)},"
            " or for a schedule that has a name",
        )


def _fewer(plan: Plan, number: int) -> str:
    """Return demands that leave at most MOST_PASSES of a plan's `number` of passes, if a plan satisfies them."""
    times, samples = number / MOST_PASSES, plan.micro_batch
    sizes = (size for size in divisors(plan.samples // plan.num_replicas) if size % samples == 0)
    larger = next((size for size in sizes if size >= times * samples), 0)
    shorter = next((cut for cut in divisors(plan.num_stages)[1:-1] if cut * cut >= times), 0)
    ways = [_demand(plan.num_stages // shorter, plan.num_replicas * shorter, samples)] if shorter else []
    ways += [_demand(plan.num_stages, plan.num_replicas, larger)] if larger else []
    most = plan.global_batch * MOST_PASSES // number
    same = _demand(plan.num_stages, plan.num_replicas, samples)
    return ", or ".join([*ways, f"a global batch of at most {most:,} and {same}"])


def _demand(stages: int, replicas: int, samples: int) -> str:
    """Return constraints for at most so many stages, and at least so many replicas and samples of a micro-batch."""
    least = [f"`{name} >= {value}`" for name, value in (("dp", replicas), ("micro_batch", samples)) if value > 1]
    return " with ".join([f"`pp <= {stages}`", *([" and ".join(least)] if least else [])])


def _found(trials: list[Trial], job: Job, base: Outcome, reporter: Reporter) -> tuple[list[_Found], str]:
    """Return the best order of every placement that is not too large, the most hopeful first, and what cut it short.

    One that is too large, or cannot beat the best one, counts with its bound alone.
    """
    from planner.program.order import find_order, least_step

    found: list[_Found] = []
    begun, stopped = time.monotonic(), ""
    ready = sorted(trials, key=lambda trial: (trial.plan.virtual_stages, least_step(trial.shop)))
    for number, trial in enumerate(ready):
        best = min((one.seconds for one in found), default=float("inf"))
        least = least_step(trial.shop) * NANOSECOND
        bound = min([least, *(one.bound for one in found)])
        reporter.progress(Standing(phase=f"order {number + 1} of {len(ready)}", best=best, bound=bound, wanted=CLOSE))
        left = max(0.01, job.time_limit - base.search.seconds - time.monotonic() + begun) if job.time_limit else 0.0
        if stopped or trial.shop.num_passes > MOST_PASSES or least >= best * (1 - CLOSE):
            found.append(_Found(plan=trial.plan, seconds=float("inf"), bound=least))
            continue
        try:
            ordered = find_order(trial.shop, trial.known, CLOSE, effort=EFFORT, time_limit=left)
        except KeyboardInterrupt:
            if not found:
                raise
            stopped = "interrupted"
            found.append(_Found(plan=trial.plan, seconds=float("inf"), bound=least))
            continue
        found.append(_judged(trial, ordered))
        if job.time_limit and left <= time.monotonic() - begun:
            stopped = "time_limit"
    return found, stopped


def _judged(trial: Trial, ordered: Ordered) -> _Found:
    """Return an order with its replayed step, backward passes whole where that takes no longer."""
    bound = ordered.bound * NANOSECOND
    if ordered.orders is None:
        return _Found(plan=trial.plan, seconds=float("inf"), bound=bound)
    orders, seconds = whole_where_as_good(ordered.orders, trial.plan, trial.costs)
    return _Found(plan=replace(trial.plan, order=rows(orders)), seconds=seconds, bound=bound)


def _lost(chosen: Finalist, other: Alternative) -> str:
    """Return why another plan was not chosen."""
    if other.prediction.step_time < chosen.prediction.step_time:
        return f"faster, but its order is {other.plan.schedule}'s"
    return lost_because(chosen, Finalist(plan=other.plan, objective=other.objective, prediction=other.prediction))


def _report(base: SearchReport, certificate: Certificate, stopped: str, orders: int, seconds: float) -> SearchReport:
    """Return how both searches went."""
    status = "optimal" if certificate.gap <= EXACT else "within_gap"
    return replace(
        base,
        status=base.status if base.status in {"time_limit", "interrupted"} else stopped or status,
        seconds=base.seconds + seconds,
        subproblems=base.subproblems + orders,
        solved=base.solved + orders,
    )
