"""The product's face: a plan on one screen, from what was asked to what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import SEARCHED, Plan
from planner.domain.prediction import (
    Alternative,
    Certificate,
    Outcome,
    Prediction,
    References,
    SearchReport,
    busiest_stage,
)
from planner.report.confidence import confidence_lines, likely_time
from planner.report.figures import count, days, percent, plural, seconds, short, words
from planner.report.header import header
from planner.report.layout import WIDTH, bars, heading, joined, labelled, worded
from planner.report.pressure import warning_lines
from planner.report.stages import axes, degrees, has_splits, stage_table
from planner.report.staleness import stale_lines
from planner.report.strip import strip_lines
from planner.simulate import Timeline

RUNNERS_UP = 5
"""Alternatives that are shown."""
RUNNERS_UP_TITLE = "runners-up (the best that the search met of each kind, not each the best there is)"
NOTHING = 1e-6
"""[-] share of the step that is rounding only."""
PARTS = 8
"""Parts of the step that are shown; the smallest are added up."""


def plan_text(
    outcome: Outcome,
    cluster: Cluster,
    model: Model,
    job: Job,
    *,
    step: Timeline | None = None,
    defaults: Sequence[str] = (),
    runs_on: Sequence[str] = (),
    hint: str = "",
    width: int = WIDTH,
) -> str:
    """Return the report on a search that found a plan.

    Args:
        outcome: the plan with all that was found out about it.
        cluster: where it runs.
        model: what it trains.
        job: the training job.
        step: what the stages do in a step, as `planner.pipeline.observed.glance` tells.
        defaults: a sentence for each value of the job that is a default.
        runs_on: names of the frameworks that can run the plan.
        hint: what to type next.
        width: [columns] of the page.
    """
    plan, prediction = outcome.plan, outcome.prediction
    lines = [
        *header(cluster, model, job, defaults, width),
        "",
        *stage_table(plan, prediction, cluster, width),
        "",
        *labelled("plan", decision(plan), width),
        *labelled("step", speed(prediction), width),
        *stale_lines(plan, width),
        *confidence_lines(prediction, width),
        *labelled("proof", proof(outcome.certificate, outcome.search, of=plan), width),
        *warning_lines(prediction, width),
        *_context(prediction, outcome.references, width),
        *idle_lines(plan, cluster, job, width),
        *training_lines(plan, prediction, cluster, job, width),
        *labelled("runs on", _runs_on(runs_on), width),
        *strip_lines(plan, prediction, step, width),
        "",
        *where_time_goes(plan, prediction, width),
        *runner_up_table(outcome, width),
        "",
        *labelled("search:", search(outcome.search), width),
        *(labelled("next:", hint, width) if hint else []),
    ]
    return "\n".join(lines) + "\n"


def decision(plan: Plan) -> str:
    """Return what was decided, in one line for `labelled`; what kinds of pipelines differ in is told kind by kind."""
    kinds = plan.pipelines
    return ", ".join(
        joined(part)
        for part in [
            f"pp {_each(one.num_stages for one in kinds)}",
            *([f"vpp {plan.virtual_stages}"] if plan.virtual_stages > 1 else []),
            f"dp {' + '.join(str(one.num_replicas) for one in kinds)}",
            *(f"{axis} {degrees(plan, axis)}" for axis in axes(plan)),
            *([f"split {_each(stage.split for stage in plan.all_stages)}"] if has_splits(plan) else []),
            f"micro-batch {_each(one.micro_batch for one in kinds)}",
            _microbatches(kinds),
            f"ZeRO {plan.zero_stage}",
            plan.schedule,
            plural(plan.num_devices, "device"),
        ]
    )


def _each(values: Iterable[int]) -> str:
    """Return each value once."""
    return "/".join(dict.fromkeys(f"{value:,}" for value in values))


def _microbatches(kinds: Sequence[Plan]) -> str:
    """Return the micro-batches of a step, and how many replicas work on one less."""
    numbers = _each(one.num_microbatches for one in kinds)
    short = sum(one.short_replicas for one in kinds)
    less = f" (one less in {plural(short, 'replica')})" if short else ""
    return f"{numbers} micro-batch{'' if numbers == '1' else 'es'} a step{less}"


def speed(prediction: Prediction) -> str:
    """Return how fast a plan is, in one line for `labelled`."""
    each = prediction.tokens_per_second / prediction.num_devices
    parts = [
        seconds(prediction.step_time) + likely_time(prediction),
        f"{count(prediction.tokens_per_second)} tokens/s ({count(each)} per device)",
        f"MFU {percent(prediction.model_flops_utilization)}",
        f"bubble {percent(prediction.bubble_fraction)}",
    ]
    return ", ".join(joined(part) for part in parts)


def proof(certificate: Certificate, report: SearchReport | None = None, *, of: Plan | None = None) -> str:
    """Return what was proved about a plan, in one line; an order of passes is proved for the stages `of` its plan."""
    takes = joined(seconds(certificate.objective))
    measure = f"in the planner's measure, where this one takes {takes}"
    ended = {"time_limit": " (stopped by the time limit)", "interrupted": " (interrupted)"}
    how = ended.get(report.status, "") if report else ""
    if not certificate.lower_bound > 0:
        return f"nothing is proved yet{how}; this plan takes {takes} in the planner's measure"
    bound = joined(seconds(certificate.lower_bound))
    if of is not None and of.schedule == SEARCHED:
        good = "optimal" if certificate.gap < 5e-5 else f"within {percent(certificate.gap)}"
        return f"{good}: no order of the passes of these stages takes less than {bound}, and this one {takes}{how}"
    if certificate.gap < 5e-5:
        return f"optimal: no plan is faster than {bound} {measure}{how}"
    replayed = joined(seconds(certificate.replay_lower_bound))
    floor = f"; no replay can end before {replayed}" if certificate.replay_lower_bound > 0 else ""
    return f"within {percent(certificate.gap)}: no plan can be faster than {bound} {measure}{floor}{how}"


def search(report: SearchReport) -> str:
    """Return how the search went; its time comes first."""
    return (
        f"{report.seconds:.1f} s, {plural(report.subproblems, 'subproblem')}, {count(report.pruned)} pruned by bounds, "
        f"{count(report.solved)} solved by CP-SAT"
    )


def _context(prediction: Prediction, references: References | None, width: int) -> list[str]:
    """Return the plan's speed as a share of what puts it in context."""
    if references is None:
        return []
    parts = [f"{percent(references.flops_step_time / prediction.step_time)} of all devices at their peak"]
    if references.homogeneous_step_time > 0:
        share = references.homogeneous_step_time / prediction.step_time
        kind = ", memory limits lifted where a group cannot hold the model" * (
            references.homogeneous_reference == "relaxed"
        )
        parts.append(f"{percent(share)} of the sum of what each group could do alone{kind}")
    if references.whole_layer_ceiling > 0:
        binds = " (no link or memory changes that: layers are too few to share out evenly)"
        ceiling = references.whole_layer_ceiling
        parts.append(f"whole layers allow equal replicas {percent(ceiling)} of it{binds * (ceiling < 1)}")
    return labelled("context", "; ".join(parts), width)


def idle_lines(plan: Plan, cluster: Cluster, job: Job, width: int = WIDTH, *, searched: bool = True) -> list[str]:
    """Return the devices that the plan leaves idle, and why."""
    idle: dict[str, list[str]] = {}
    for group in cluster.groups:
        blocks = [devices for name, devices in plan.devices if name == group.name]
        left = group.num_devices - sum(blocks)
        if left <= 0:
            continue
        limits = [one.text for one in job.constraints if one.subject in {"devices", f"group {group.name}"}]
        if limits:
            why = f"as wanted ({limits[0]})"
        elif left < plan.num_replicas and not plan.other_pipelines:
            why = f"too few for one more stage of {plural(plan.num_replicas, 'replica')}"
        elif blocks and left < min(blocks) and not plan.other_pipelines:
            why = f"too few for another stage like these, which take {count(min(blocks))}"
        elif not searched:
            why = "the layout does not use them"
        elif job.target and not blocks:
            why = f"no faster plan that {job.target} can run uses them"
        else:
            why = "no faster plan that uses them was found"
        idle.setdefault(why, []).append(joined(f"{count(left)} of {count(group.num_devices)} {group.name}"))
    texts = [f"{', '.join(devices)}: {why}" for why, devices in idle.items()]
    return labelled("idle", "; ".join(texts), width) if texts else []


def training_lines(plan: Plan, prediction: Prediction, cluster: Cluster, job: Job, width: int = WIDTH) -> list[str]:
    """Return days and cost of the whole training, as far as they are known."""
    hourly = hourly_price(plan, cluster)
    if not job.total_tokens:
        per_token = hourly / 3600 / prediction.tokens_per_second
        text = f"{per_token * 1e9:,.2f} for 10^9 tokens, at the prices given for the devices in use"
        return labelled("cost", text, width) if hourly else []
    time = job.total_tokens / prediction.tokens_per_second
    cost = f", cost {hourly * time / 3600:,.0f} at the prices given for the devices in use" if hourly else ""
    return labelled("training", f"{days(time)} for {short(job.total_tokens)} tokens, without failures{cost}", width)


def hourly_price(plan: Plan, cluster: Cluster) -> float:
    """Return what the devices in use cost [currency/h]; zero where a price is not known."""
    prices = {group.name: group.price_per_device_hour for group in cluster.groups}
    known = all(prices.get(group, 0.0) > 0 for group, _ in plan.devices)
    return sum(number * prices[group] for group, number in plan.devices) if known else 0.0


def _runs_on(names: Sequence[str]) -> str:
    if names:
        return ", ".join(names)
    return "no framework that the planner knows, as it is; --for NAME finds the fastest plan that NAME can run"


def where_time_goes(plan: Plan, prediction: Prediction, width: int = WIDTH) -> list[str]:
    """Return the parts of the step, largest first, as bars, below a line that names the stage they are of."""
    spent = [part for part in prediction.time if part[1] > NOTHING * prediction.step_time]
    parts = sorted(spent, key=lambda part: -part[1])
    shown, rest = parts[:PARTS], sum(time for _, time in parts[PARTS:])
    if rest:
        shown.append(("other", rest))
    rows = [
        (words(name), time, f"{seconds(time)} {percent(time / prediction.step_time).rjust(6)}") for name, time in shown
    ]
    busiest = busiest_stage(plan, prediction.stages)
    whose = f" (stage {busiest}, the busiest)" if len(prediction.stages) > 1 else ""
    return [*heading(f"where a step goes{whose}", width), *bars(rows, width, indent=2)]


def runner_up_table(outcome: Outcome, width: int = WIDTH) -> list[str]:
    """Return the best of what was not chosen, and why."""
    head, rows = runner_up_rows(outcome)
    if not rows:
        return []
    return [
        "",
        *heading(RUNNERS_UP_TITLE, width),
        *worded(head, rows, width, right=",".join(head[:-1]), indent=2),
    ]


def runner_up_rows(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Return the titles of the columns and the cells of each runner-up, in the order of `Outcome.alternatives`."""
    shown = outcome.alternatives[:RUNNERS_UP]
    cut = list(dict.fromkeys(axis for one in shown for axis in axes(one.plan)))
    chunked = any(plan.virtual_stages > 1 for plan in (outcome.plan, *(one.plan for one in shown)))
    head = ["pp", "vpp", "dp", *cut, "mbs", "ZeRO", "schedule", "step", "slower", "lost because"]
    named = len({plan.schedule for plan in (outcome.plan, *(one.plan for one in shown)) if plan.num_stages > 1}) > 1
    best = outcome.prediction.step_time
    return head, [_runner_up(one, best, cut, chunked=chunked, named=named) for one in shown]


def _runner_up(one: Alternative, best: float, cut: Sequence[str], *, chunked: bool, named: bool) -> list[str]:
    """Return the cells of a row; those of chunks and schedule are empty where no plan has several, or all have one."""
    plan, kinds = one.plan, one.plan.pipelines
    return [
        _each(kind.num_stages for kind in kinds),
        str(plan.virtual_stages) if chunked else "",
        "+".join(str(kind.num_replicas) for kind in kinds),
        *(degrees(one.plan, axis) for axis in cut),
        _each(kind.micro_batch for kind in kinds),
        str(plan.zero_stage),
        plan.schedule if named else "",
        seconds(one.prediction.step_time),
        f"{one.prediction.step_time / best - 1:+.1%}",
        one.lost_because,
    ]
