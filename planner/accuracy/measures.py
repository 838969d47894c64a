"""All that is said of predictions against measured runs, for all runs and for parts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planner.accuracy.errors import Errors, Fit, fit, memory_errors, time_errors
from planner.accuracy.judged import Judged
from planner.accuracy.ranking import Choice, Key, Ranking, choice, key, ranking
from planner.accuracy.run import Run

T = TypeVar("T", str, Key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some runs."""

    rows: int
    judged: int
    """Rows without a reason why they cannot be judged."""
    time: Errors
    ranking: Ranking
    memory: Errors
    fit: Fit
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Of all runs, and of parts of them."""

    headroom: float
    """[-] share of memory left free."""
    all: Figures
    healthy: Figures
    """Over the rows without a flag."""
    healthy_in_node: Figures
    """Over those of them whose tensor group stays in a node: groups that leave it are much slower."""
    sources: tuple[tuple[str, Figures], ...]
    groups: tuple[tuple[Key, Figures], ...]
    skipped: tuple[tuple[str, int], ...]
    """Why rows cannot be judged, and how many; the most frequent first."""


def measure(judged: Sequence[Judged], headroom: float) -> Accuracy:
    """Return the figures of judged runs; `headroom` is that of their memory limits."""
    healthy = [one for one in judged if not one.run.flag]
    reasons = Counter(one.reason for one in judged if one.reason)
    return Accuracy(
        headroom=headroom,
        all=figures(judged),
        healthy=figures(healthy),
        healthy_in_node=figures([one for one in healthy if _tensor_group_in_node(one.run)]),
        sources=_parts(judged, lambda one: one.run.source),
        groups=_parts(judged, lambda one: key(one.run)),
        skipped=tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )


def figures(judged: Sequence[Judged]) -> Figures:
    """Return the figures of some runs."""
    return Figures(
        rows=len(judged),
        judged=sum(not one.reason for one in judged),
        time=time_errors(judged),
        ranking=ranking(judged),
        memory=memory_errors(judged),
        fit=fit(judged),
        choice=choice(judged),
    )


def _parts(judged: Iterable[Judged], part: Callable[[Judged], T]) -> tuple[tuple[T, Figures], ...]:
    """Return the figures of each part, in the order of their keys."""
    parts: dict[T, list[Judged]] = {}
    for one in judged:
        parts.setdefault(part(one), []).append(one)
    return tuple((at, figures(parts[at])) for at in sorted(parts))


def _tensor_group_in_node(run: Run) -> bool:
    """Whether a tensor group fits a node; unknown sizes are taken to."""
    return run.tp is None or run.gpus_per_node is None or run.tp <= run.gpus_per_node
