"""What two plans differ in: the decision, line by line, and what is predicted of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.parallelism import AXES
from planner.report.figures import count, gib, percent, seconds
from planner.report.layout import WIDTH, fitted, worded
from planner.report.stages import degrees, recompute
from planner.report.to_json import prediction_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A plan with all that is known of it."""

    plan: Plan
    cluster: Cluster
    model: Model
    job: Job
    prediction: Prediction | None
    """None where the plan is not sound enough to be priced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that two plans differ in, or a prediction of both."""

    name: str
    before: str
    after: str
    change: str = ""
    """Of a prediction, in percent."""

    @property
    def differs(self) -> bool:
        """Whether the two are unlike."""
        return self.before != self.after


def decided(before: Side, after: Side) -> list[Difference]:
    """Return what was decided otherwise, the widest choices first."""
    rows = [
        Difference(name=name, before=mine, after=other)
        for (name, mine), (_, other) in zip(_choices(before), _choices(after), strict=True)
    ]
    return [row for row in rows if row.differs]


def predicted(before: Side, after: Side) -> list[Difference]:
    """Return time and memory of both; nothing where one has no prediction."""
    one, other = before.prediction, after.prediction
    if one is None or other is None:
        return []
    rows = [
        ("step time", one.step_time, other.step_time, seconds),
        ("tokens/s", one.tokens_per_second, other.tokens_per_second, count),
        ("MFU", one.model_flops_utilization, other.model_flops_utilization, percent),
        ("bubble", one.bubble_fraction, other.bubble_fraction, percent),
        ("peak memory", one.peak_memory, other.peak_memory, lambda size: f"{gib(size)} GiB"),
    ]
    found = [
        Difference(name=name, before=text(mine), after=text(theirs), change=f"{theirs / mine - 1:+.1%}" if mine else "")
        for name, mine, theirs, text in rows
    ]
    fits = [Difference(name="fits", before=_yes(one.fits), after=_yes(other.fits))]
    return [*found, *fits]


def difference_line(before: Side, after: Side) -> str:
    """Return the step times of both and what was decided otherwise, as one line."""
    times = [f"{one.name} {one.before} -> {one.after} ({one.change})" for one in predicted(before, after)[:1]]
    return "; ".join([*times, in_words(decided(before, after)) or "the decision is the same"])


def difference_text(names: tuple[str, str], before: Side, after: Side, width: int = WIDTH) -> str:
    """Return both parts as a page; `names` say which plan is which."""
    changed = decided(before, after)
    head = ["", *names]
    rows = [[one.name, one.before, one.after] for one in changed]
    lines = ["decision", *worded(head, rows, width, indent=2)]
    lines = lines if changed else ["decision: the same"]
    outlook = predicted(before, after)
    if outlook:
        head = ["", *names, "change"]
        rows = [[one.name, one.before, one.after, one.change] for one in outlook]
        lines += ["prediction", *fitted(head, rows, width, right="change", indent=2)]
    return "\n".join(lines) + "\n"


def difference_document(before: Side, after: Side) -> dict[str, Any]:
    """Return both parts as plain data; predictions in seconds and bytes."""
    return {
        "format_version": "1.0",
        "decision": [{"name": one.name, "before": one.before, "after": one.after} for one in decided(before, after)],
        "before": _record(before),
        "after": _record(after),
    }


def _record(side: Side) -> dict[str, Any] | None:
    if side.prediction is None:
        return None
    return prediction_record(side.plan, side.prediction)


def in_words(changed: Sequence[Difference]) -> str:
    """Return what was decided otherwise as one line: ``tp 8 -> 4, pp 4 -> 8``."""
    return ", ".join(f"{one.name} {one.before} -> {one.after}" for one in changed)


def _choices(side: Side) -> list[tuple[str, str]]:
    """Return (name, value) of all that is decided."""
    plan, job = side.plan, side.job
    kinds = plan.pipelines
    groups: dict[str, int] = {}
    for group, number in plan.devices:
        groups[group] = groups.get(group, 0) + number
    return [
        ("devices", " + ".join(f"{number} x {_device(side.cluster, group)}" for group, number in groups.items())),
        *((axis.name, degrees(plan, axis.name)) for axis in AXES),
        ("pp", _each(one.num_stages for one in kinds)),
        ("vpp", str(plan.virtual_stages)),
        ("dp", " + ".join(str(one.num_replicas) for one in kinds)),
        ("micro-batch", _each(one.micro_batch for one in kinds)),
        ("micro-batches", _each(one.num_microbatches for one in kinds)),
        ("ZeRO", str(plan.zero_stage)),
        ("schedule", plan.schedule),
        ("order", _order(plan)),
        ("layers", ",".join(str(stage.num_layers) for stage in plan.all_stages)),
        ("recompute", _runs([recompute(stage) for stage in plan.all_stages])),
        ("sequence parallel", _runs([_yes(stage.strategy.sequence_parallel) for stage in plan.all_stages])),
        ("global batch", f"{job.global_batch:,}"),
        ("sequence", f"{job.sequence:,}"),
        ("precision", job.precision),
        ("framework", job.framework),
        ("model", side.model.name),
    ]


def _order(plan: Plan) -> str:
    """Return by what an order of its own is told from others; a dash for a plan without one."""
    from planner.specs.plan import digest

    if not plan.order:
        return "-"
    number = sum(row.count(",") + 1 for row in plan.order)
    return f"{number} passes, {digest(plan.order).removeprefix('sha256:')[:8]}"


def _device(cluster: Cluster, group: str) -> str:
    """Return the device of a group, or the group's name where the cluster has none of that name."""
    return next((one.device.name for one in cluster.groups if one.name == group), group)


def _each(values: Iterable[int]) -> str:
    return "/".join(dict.fromkeys(str(value) for value in values))


def _runs(values: Sequence[str]) -> str:
    """Return values of stages, each once where all are alike."""
    return values[0] if len(set(values)) == 1 else ",".join(values)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
