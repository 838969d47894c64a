"""From a cluster, a model and a job to a proved plan: the whole flow on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from planner.candidates.choices import allows, divisors
from planner.checks import Context, other_profiles, run_checks
from planner.costs import plan_cost
from planner.domain.cluster import Cluster
from planner.domain.framework import Framework
from planner.domain.job import EQUAL, Constraint, Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Alternative, Certificate, Outcome, SearchReport
from planner.domain.progress import Part, Reporter, Standing
from planner.errors import NoFeasiblePlan, NoPlanInTime, SpecError
from planner.pipeline.confidence import with_confidence
from planner.pipeline.finalists import Finalist, choose, lost_because
from planner.pipeline.order import asks_for_order, for_stages, with_order
from planner.pipeline.references import find_references
from planner.pipeline.repairs import explain_infeasible
from planner.report.figures import plural
from planner.schedules import SCHEDULES, Schedule
from planner.simulate import predict
from planner.specs.calibration import framework_on
from planner.specs.catalog import framework as find_framework
from planner.units import NANOSECOND

if TYPE_CHECKING:
    from planner.candidates import Space
    from planner.program import Result, UnlikeResult

NUM_FINALISTS = 12
NUM_ALTERNATIVES = 5
LEAST_TIME = 0.01
"""[s] that the second of two searches has at least."""
EXACT = 1e-6
"""[-] gap below which a plan is called optimal."""


def make_plan(
    cluster: Cluster, model: Model, job: Job, *, references: bool = True, reporter: Reporter | None = None
) -> Outcome:
    """Return the fastest plan that fits, with its proof, prediction and runners-up.

    Raises:
        SpecError: a group's layers were measured of another model or for another job.
        NoFeasiblePlan: proved that nothing fits; says by how much, and what would make it fit.
        NoPlanInTime: the time limit ran out before a plan was found.
        KeyboardInterrupt: interrupted before a plan was found.

    """
    reporter = reporter or Reporter()
    if asks_for_order(job):
        stages = make_plan(cluster, model, for_stages(job), references=references, reporter=reporter)
        return with_order(stages, cluster, model, job, reporter)
    framework = framework_on(cluster, job.framework)
    target = find_framework(job.target) if job.target else None
    if measured_otherwise := other_profiles(cluster.groups, model, job):
        raise SpecError(measured_otherwise)
    try:
        space, result, unlike = search(cluster, model, job, framework, target, reporter)
    except NoFeasiblePlan as error:
        if job.time_limit > 0:
            raise
        try:
            explained = explain_infeasible(error, cluster, model, job, Part(reporter, "what would help"))
        except KeyboardInterrupt:
            explained = error  # that nothing fits is proved already
        raise explained from None
    finalists = _finalists(space, result, unlike, cluster, model, job, framework, reporter)
    bound = min(result.lower_bound, unlike.lower_bound) * NANOSECOND + framework.step_overhead
    chosen = choose(finalists, bound, job.gap)
    certificate = Certificate(
        objective=chosen.objective,
        lower_bound=min(bound, chosen.objective),
        replay_lower_bound=min(result.replay_bound, unlike.replay_bound) * NANOSECOND + framework.step_overhead,
    )
    shapes = {finalist.shape: finalist for finalist in reversed(finalists) if finalist.shape != chosen.shape}
    others = sorted(shapes.values(), key=lambda other: other.prediction.step_time)[:NUM_ALTERNATIVES]
    return Outcome(
        plan=chosen.plan,
        prediction=chosen.prediction,
        certificate=certificate,
        search=_report(result, unlike, space, certificate.gap),
        alternatives=tuple(
            Alternative(
                plan=other.plan,
                prediction=other.prediction,
                objective=other.objective,
                lost_because=lost_because(chosen, other),
            )
            for other in others
        ),
        references=find_references(
            cluster,
            model,
            replace(job, time_limit=max(0.0, job.time_limit - _seconds(result, unlike))),
            framework,
            target,
            Part(reporter, "references"),
            full=references
            and not (result.stopped or unlike.stopped)
            and not 0 < job.time_limit <= _seconds(result, unlike),
        ),
    )


def search(
    cluster: Cluster,
    model: Model,
    job: Job,
    framework: Framework,
    target: Framework | None,
    reporter: Reporter | None = None,
    *,
    equal: bool = False,
) -> tuple[Space, Result, UnlikeResult]:
    """Search the plans of a job, those with `equal` replicas first or alone; the results hold at least one plan.

    Raises:
        NoFeasiblePlan: proved that there is none.
        NoPlanInTime: the time limit ran out before one was found.
        KeyboardInterrupt: interrupted before one was found.

    """
    from planner.candidates import find_space
    from planner.program import Search, UnlikeResult, UnlikeSearch

    if reporter:
        reporter.progress(Standing(phase="candidates"))
    space = find_space(cluster, model, job, framework, target)
    result = Search(space, job.gap, job.time_limit, reporter).run()
    left = max(LEAST_TIME, job.time_limit - result.seconds) if job.time_limit > 0 else 0.0
    best = min((found.objective for found in result.found), default=float("inf"))
    unlike = UnlikeResult()
    if not equal:
        others = UnlikeSearch(space, job.gap, best, left, reporter)
        unlike = others.unsearched() if result.stopped else others.run()
    if not result.found and not unlike.found:
        stopped = result.stopped or unlike.stopped
        if stopped == "interrupted":
            raise KeyboardInterrupt
        if stopped == "time_limit":
            message = f"no plan was found in {job.time_limit:g} s; one may exist"
            raise NoPlanInTime(message, min(result.lower_bound, unlike.lower_bound) * NANOSECOND)
        raise NoFeasiblePlan(_nothing(space, result), _rejections(space, result))
    return space, result, unlike


def _seconds(result: Result, unlike: UnlikeResult) -> float:
    return result.seconds + unlike.seconds


def _nothing(space: Space, result: Result) -> str:
    """Return why there is no plan."""
    constraints = _quoted(space.job.constraints)
    if not space.schedules:
        return _no_schedule(space)
    asked = any(c.subject == "split" or not c.admits_replicas(EQUAL) for c in space.job.constraints)
    if asked and not result.subproblems:
        frameworks = f"; {space.target.name} runs neither" if space.target else ""
        return (
            f"no plan satisfies {constraints} together: unlike replicas need two or three groups, and splits (1, 2, 4,"
            f" 8) several groups with replicas that are alike{frameworks}"
        )
    if not result.subproblems and (reason := _no_stages(space)):
        return f"no plan satisfies {constraints}: {reason}"
    if not result.subproblems:
        profiled = any(group.profile for group in space.cluster.groups)
        return (
            f"no numbers of replicas, stages and devices satisfy {constraints or 'the job'}: replicas times micro-batch"
            f" must divide the global batch of {space.job.global_batch:,}, on {plural(space.num_devices, 'device')}"
            f"{', and profiles have no layers but those that were measured' * profiled}"
        )
    if not result.unfit and constraints:
        return f"no plan that satisfies {constraints} fits on the devices and in the memory that there are"
    return f"{space.model.name} does not fit on {space.cluster.name}: every layout needs more memory than there is"


def _no_schedule(space: Space) -> str:
    """Return why no schedule is possible."""
    asked = [constraint for constraint in space.job.constraints if constraint.subject == "schedule"]
    left = [listed.name for listed in SCHEDULES if all(constraint.admits(listed.name) for constraint in asked)]
    if not left:
        return f"no schedule satisfies {_quoted(asked)} together"
    if space.target and not set(left) & set(space.target.can.schedules):
        return f"{space.target.name} runs {', '.join(space.target.can.schedules)}; none satisfies {_quoted(asked)}"
    layers = space.model.num_layers
    needs = (
        f"{one.name} takes 2 chunks a stage or more, of numbers that divide the {layers} layers"
        if one.with_chunks
        else f"{one.name} has {plural(one.virtual_stages, 'chunk')} a stage"
        for one in SCHEDULES
        if one.name in left and not (one.changes_semantics and len(left) > 1)
    )
    return f"no schedule satisfies {_quoted(space.job.constraints)}: {'; '.join(needs)}"


def _no_stages(space: Space) -> str:
    """Return why no schedule has a number of stages; empty if one has."""
    demanded, most = space.job.constraints, min(space.num_devices, space.model.num_layers)
    stages = [number for number in range(1, most + 1) if allows(demanded, "pp", number)]
    if not stages:
        return (
            f"there are 1 to {most} stages on {plural(space.num_devices, 'device')}" if most > 1 else "there is 1 stage"
        )
    batches = divisors(space.job.global_batch)

    def trouble(schedule: Schedule, number: int) -> str:
        if number == 1:
            return f"{schedule.name} needs several stages" if schedule.parts > 1 else schedule.blocker(1, 1)
        found = [schedule.blocker(number, batch) for batch in batches]
        return found[-1] if all(found) else ""

    first = ""
    for schedule, number in product(space.schedules, stages):
        reason = trouble(schedule, number)
        if not reason:
            return ""
        first = first or reason
    return first


def _quoted(constraints: Iterable[Constraint]) -> str:
    """Return constraints as they were written, each once."""
    return ", ".join(repr(text) for text in dict.fromkeys(constraint.text for constraint in constraints))


def _rejections(space: Space, result: Result) -> dict[str, int]:
    counted = dict(space.rejections)
    if result.unfit:
        counted["needs more memory than there is, all layers recomputed"] = result.unfit
    return counted


def _finalists(
    space: Space,
    result: Result,
    unlike: UnlikeResult,
    cluster: Cluster,
    model: Model,
    job: Job,
    framework: Framework,
    reporter: Reporter,
) -> list[Finalist]:
    """Replay the best plans of the program, each shape once; a plan of the program always passes the checks."""
    from planner.program import decode, decode_unlike

    found = [*((one.objective, decode(space, one)) for one in result.found[: 2 * NUM_FINALISTS])]
    found += [(one.objective, decode_unlike(space, one)) for one in unlike.found[:NUM_FINALISTS]]
    plans: dict[Plan, float] = {}
    for objective, plan in sorted(found, key=lambda pair: pair[0]):
        if len(plans) < NUM_FINALISTS:
            plans.setdefault(plan, objective * NANOSECOND + framework.step_overhead)
    finalists = []
    for plan, seconds in plans.items():
        reporter.progress(Standing(phase="replay"))
        costs = plan_cost(plan, cluster, model, job, framework)
        problems = run_checks(Context(plan=plan, cluster=cluster, model=model, job=job, stages=costs.all_stages))
        assert not problems, f"the program made a plan that breaks a rule: {problems[0]}; {plan}"
        prediction = with_confidence(predict(plan, costs, cluster, model, job), plan, cluster, model, job)
        finalists.append(Finalist(plan=plan, objective=seconds, prediction=prediction))
    return sorted(finalists, key=lambda finalist: finalist.prediction.step_time)


def _report(result: Result, unlike: UnlikeResult, space: Space, gap: float) -> SearchReport:
    subproblems = result.subproblems + unlike.nodes
    return SearchReport(
        status=result.stopped or unlike.stopped or ("optimal" if gap <= EXACT else "within_gap"),
        seconds=_seconds(result, unlike),
        subproblems=subproblems,
        pruned=subproblems - result.solved - (result.open if result.stopped else 0),
        solved=result.solved,
        rejections=tuple(sorted(_rejections(space, result).items())),
    )
