"""What two plans differ in: the decision, line by line, and what is predicted of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Prediction
from planner.report.choices import choices
from planner.report.figures import count, gib, percent, seconds
from planner.report.layout import WIDTH, fitted, joined, table, wrapped_rows
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
    names = (_end(names[0], width // 3), _end(names[1], width // 3))
    head = ["", *names]
    rows = [[one.name, _whole(one.before), _whole(one.after)] for one in changed]
    lines = ["decision", *table(head, wrapped_rows(head, rows, width, indent=2, last=2), indent=2)]
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
    """Return what was decided otherwise as one line: ``tp 8 -> 4; pp 4 -> 8``."""
    return "; ".join(f"{one.name} {one.before} -> {one.after}" for one in changed)


def _choices(side: Side) -> list[tuple[str, str]]:
    return choices(side.plan, side.cluster, side.model, side.job)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _end(name: str, width: int) -> str:
    """Return the name of a file, of a long one the end, where plans beside one another are told apart."""
    return name if len(name) <= width else f"...{name[3 - width :]}"


def _whole(text: str) -> str:
    """Return `text` so that lines are broken behind its commas alone."""
    return ", ".join(joined(part) for part in text.split(", "))
