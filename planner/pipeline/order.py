"""From a plan with a named schedule to the best order of its passes: the program finds it, the replay judges it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from planner.candidates.choices import allows
from planner.checks import Context, run_checks
from planner.costs import PlanCost, plan_cost
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import SEARCHED, Plan, Stage
from planner.domain.prediction import FORWARD_BACKWARD, Alternative, Certificate, Outcome, SearchReport
from planner.domain.progress import Reporter
from planner.errors import NoFeasiblePlan, SpecError
from planner.pipeline.confidence import with_confidence
from planner.pipeline.finalists import Finalist, lost_because
from planner.pipeline.merging import whole_where_as_good
from planner.program.order import Ordered, Shop, find_order, least_step
from planner.schedules import SCHEDULES, Orders, Schedule, loop, rows
from planner.schedules.base import vee
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework
from planner.units import NANOSECOND

MOST_PASSES = 1000
"""F, I and W of all stages of a pipeline up to which an order is looked for."""
EFFORT, CHUNKS_EFFORT = 30.0, 3.0
"""What the solver spends on an order, in its deterministic measure: of one chunk a stage, and of several, where what is
held makes its propagation slow."""
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
    """Return the job of the search for stages: with the named schedules, several stages, and replicas that are alike.

    Raises:
        NoFeasiblePlan: the job is for a framework that has its own orders only.

    """
    if job.target and SEARCHED not in find_framework(job.target).can.schedules:
        raise NoFeasiblePlan(
            f"{job.target} runs no order of passes but its own; --for torchtitan reads one from a file, and without"
            " --for any framework's costs will do",
            {},
        )
    kept = (c for c in job.constraints if c.subject != "schedule" or c.value != SEARCHED)
    needed = (("pp", ">=", "2"), ("replicas", "=", "equal"))
    added = (
        Constraint(subject=subject, operator=operator, value=value, text=f"{PLACE}, so {subject} {operator} {value}")
        for subject, operator, value in needed
    )
    return replace(job, constraints=(*kept, *added))


def with_order(base: Outcome, cluster: Cluster, model: Model, job: Job, reporter: Reporter | None = None) -> Outcome:
    """Return the `base` plan with the best order of its passes, in one chunk a stage, two, or its own number.

    Raises:
        SpecError: there are too many passes.
        NoFeasiblePlan: the constraints leave no placement of chunks.

    """
    begun = time.monotonic()
    framework = framework_on(cluster, job.framework)
    trials = list(_trials(base.plan, cluster, model, job, framework))
    if not trials:
        raise NoFeasiblePlan(f"{PLACE} has one chunk a stage, two, or those of the best named schedule; none finds room", {})
    _refuse_large(trials[0].plan)
    found, stopped = _found(trials, job, base, reporter or Reporter())
    best = min(found, key=lambda one: one.seconds)
    bound = min((one.bound for one in found), default=0.0) + framework.step_overhead
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A placement of chunks: the plan with any order, what it costs, and its job shop."""

    plan: Plan
    costs: PlanCost
    shop: Shop
    known: tuple[Orders, ...]
    """Those of the named schedules with the same placement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The best order of a placement."""

    plan: Plan
    seconds: float
    """[s] of its replayed step, without overhead."""
    bound: float
    """[s] below which no order's step lies."""


def _trials(base: Plan, cluster: Cluster, model: Model, job: Job, framework: Framework) -> Iterator[_Trial]:
    """Yield the placements whose weights, and one micro-batch at least, find room."""
    for chunks, placement in dict.fromkeys(((1, loop), (2, loop), (2, vee), (base.virtual_stages, loop))):
        if not allows(job.constraints, "vpp", chunks) or min(s.num_layers for s in base.stages) < chunks:
            continue
        known = tuple(_named(base.num_stages, base.num_microbatches, chunks, placement))
        plan = replace(
            base,
            stages=_in_chunks(base, chunks, placement),
            schedule=SEARCHED,
            virtual_stages=chunks,
            microbatch_group=0,
            order=rows(known[0]),
        )
        costs = plan_cost(plan, cluster, model, job, framework)
        shop = _shop(plan, costs, placement, cluster, job)
        if shop is not None:
            yield _Trial(plan=plan, costs=costs, shop=shop, known=known)


def _named(num_stages: int, number: int, chunks: int, placement: Callable[[int, int], int]) -> Iterator[Orders]:
    """Yield the orders of the schedules that lay the stages out like this, and end a step before they begin the next."""
    for listed in SCHEDULES:
        own: Schedule = listed.with_chunks(chunks) if listed.with_chunks and chunks > 1 else listed
        flushes = own.flushes and not own.joins_steps and own.directions == 1
        if own.virtual_stages != chunks or not flushes or own.blocker(num_stages, number):
            continue
        if all(own.rank(s, 0, num_stages) == placement(s, num_stages) for s in range(num_stages * chunks)):
            yield own.passes(num_stages, number)


def _in_chunks(base: Plan, chunks: int, placement: Callable[[int, int], int]) -> tuple[Stage, ...]:
    """Return the stages with their layers in so many chunks, as evenly as they go."""
    count = base.num_stages
    sizes = [base.stages[placement(number, count)].num_layers for number in range(chunks * count)]
    cut = [sizes[number] // chunks + (number // count < sizes[number] % chunks) for number in range(chunks * count)]
    ends = list(accumulate(cut))
    runs: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (end, size) in enumerate(zip(ends, cut, strict=True)):
        runs[placement(number, count)].append((end - size, end - 1))
    return tuple(
        replace(stage, first_layer=first[0], last_layer=first[1], later_chunks=tuple(later))
        for stage, (first, *later) in zip(base.stages, runs, strict=True)
    )


def _shop(
    plan: Plan, costs: PlanCost, placement: Callable[[int, int], int], cluster: Cluster, job: Job
) -> Shop | None:
    """Return the job shop of a plan, times rounded down; None where even one micro-batch finds no room."""
    count = plan.num_stages
    ranks = tuple(placement(number, count) for number in range(count * plan.virtual_stages))
    hosted = {one.stage: one for stage in costs.stages for one in stage.hosted}
    room = []
    for stage, cost in zip(plan.stages, costs.stages, strict=True):
        limit = cluster.group(stage.group).device.memory * (1 - job.headroom)
        levels = cost.levels
        left = limit - levels.resident - levels.working
        layers = left / levels.held * stage.num_layers if levels.held else stage.num_layers * plan.num_microbatches
        most = stage.num_layers * plan.num_microbatches
        other = max(size for name, size in cost.peaks if name != FORWARD_BACKWARD)
        if other > limit or layers < stage.num_layers:
            return None
        room.append(int(min(layers * (1 - EXACT * EXACT), most)))
    return Shop(
        num_microbatches=plan.num_microbatches,
        ranks=ranks,
        times=tuple(
            (_ns(one.forward), _ns(one.backward - one.weight), _ns(one.weight))
            for one in (hosted[number] for number in range(len(ranks)))
        ),
        hops={pair: _ns(seconds) for pair, seconds in costs.links.items()},
        sync=tuple(_ns(cost.sync) for cost in costs.stages),
        sizes=tuple(plan.stages[rank].chunk_sizes[number // count] for number, rank in enumerate(ranks)),
        room=tuple(room),
    )


def _ns(seconds: float) -> int:
    return int(seconds / NANOSECOND)


def _refuse_large(plan: Plan) -> None:
    """Stop where there are too many passes to be ordered."""
    number = 3 * plan.num_microbatches * plan.num_stages
    if number > MOST_PASSES:
        raise SpecError.of(
            PLACE,
            f"the best stages for it are {plan.num_stages} with {plan.num_microbatches} micro-batches, {number:,} passes"
            f" in all, and orders are looked for up to {MOST_PASSES:,}; ask for fewer with `pp <= {max(2, plan.num_stages // 2)}`,"
            f" `micro_batch >= {2 * plan.micro_batch}` or a smaller global batch, or leave the schedule to the planner",
        )


def _found(trials: list[_Trial], job: Job, base: Outcome, reporter: Reporter) -> tuple[list[_Found], str]:
    """Return the best order of every placement that is not too large, the most hopeful first, and what cut it short.

    One that is too large, or cannot beat the best one, counts with its bound alone.
    """
    found: list[_Found] = []
    begun, stopped = time.monotonic(), ""
    ready = sorted(trials, key=lambda trial: (trial.plan.virtual_stages, least_step(trial.shop)))
    for number, trial in enumerate(ready):
        best = min((one.seconds for one in found), default=float("inf"))
        least = least_step(trial.shop) * NANOSECOND
        reporter.progress("order", len(ready) - number, best, min([least, *(one.bound for one in found)]))
        left = max(0.01, job.time_limit - base.search.seconds - time.monotonic() + begun) if job.time_limit else 0.0
        if stopped or trial.shop.num_passes > MOST_PASSES or least >= best * (1 - CLOSE):
            found.append(_Found(plan=trial.plan, seconds=float("inf"), bound=least))
            continue
        effort = EFFORT if trial.plan.virtual_stages == 1 else CHUNKS_EFFORT
        try:
            ordered = find_order(trial.shop, trial.known, CLOSE, effort=effort, time_limit=left)
        except KeyboardInterrupt:
            if not found:
                raise
            stopped = "interrupted"
            found.append(_Found(plan=trial.plan, seconds=float("inf"), bound=least))
            continue
        if not ordered.impossible:
            found.append(_judged(trial, ordered))
        if job.time_limit and left <= time.monotonic() - begun:
            stopped = "time_limit"
    return found, stopped


def _judged(trial: _Trial, ordered: Ordered) -> _Found:
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
