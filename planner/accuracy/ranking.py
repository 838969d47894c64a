"""Whether the planner picks well: what matters for a plan is the order of the layouts, not the seconds.

Layouts compete within a group: same source, model, number of devices and sequence length. They are ordered by time per
token, so that runs of unlike global batches compare. Runs that are predicted alike are one pick, whose outcome is
their mean: no figure depends on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from planner.accuracy.errors import mean
from planner.accuracy.judged import Judged
from planner.accuracy.run import Run

LEAST = 4
"""[runs] of a group in which an order says something."""

Key = tuple[str, str, int]
"""Source, model and number of devices; 0 devices where the source does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The order of what ran; None where no group has enough runs."""

    groups: int
    """With at least four runs."""
    spearman: float | None
    """[-] rank correlation of predicted and measured, mean over the groups; 1 is the same order."""
    top1_regret: float | None
    """[-] measured time of the run that is predicted fastest over the measured best, less 1; mean over the groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Picking a layout end to end, among some that ran and some that ran out of memory; None where there is none."""

    groups: int
    """With runs of both kinds."""
    picks: int
    """Groups in which something is predicted to fit."""
    oom_picks: float | None
    """[-] share of the picks that ran out of memory."""
    regret: float | None
    """[-] measured time of the other picks over the measured best, less 1; mean."""


def key(run: Run) -> Key:
    """Return what runs of one group share, the sequence length apart."""
    return run.source, run.model, run.gpus or 0


def ranking(judged: Iterable[Judged]) -> Ranking:
    """Return how well the predictions order what ran."""
    pairs = [
        [(predicted, measured) for _, predicted, measured in group if measured is not None]
        for group in _competitors(judged)
    ]
    large = [group for group in pairs if len(group) >= LEAST]
    found = [spearman([predicted for predicted, _ in group], [measured for _, measured in group]) for group in large]
    return Ranking(
        groups=len(large),
        spearman=mean([rho for rho in found if rho is not None]),
        top1_regret=mean([_regret(group) for group in large]),
    )


def choice(judged: Iterable[Judged]) -> Choice:
    """Return what comes of taking the fastest layout that is predicted to fit."""
    groups = picks = 0
    oom: list[float] = []
    regrets: list[float] = []
    for group in _competitors(one for one in judged if one.fits is not None and one.run.oom in {"0", "1"}):
        ran = [measured for one, _, measured in group if one.run.oom == "0" and measured is not None]
        if not ran or all(one.run.oom == "0" for one, _, _ in group):
            continue
        groups += 1
        fitting = [item for item in group if item[0].fits]
        if not fitting:
            continue
        picks += 1
        fastest = min(predicted for _, predicted, _ in fitting)
        picked = [(one, measured) for one, predicted, measured in fitting if predicted == fastest]
        oom.append(sum(one.run.oom == "1" for one, _ in picked) / len(picked))
        regret = mean([measured / min(ran) - 1 for one, measured in picked if one.run.oom == "0" and measured])
        regrets += [] if regret is None else [regret]
    return Choice(groups=groups, picks=picks, oom_picks=mean(oom), regret=mean(regrets))


def _competitors(judged: Iterable[Judged]) -> list[list[tuple[Judged, float, float | None]]]:
    """Return, group by group, the runs with their times per token [s], predicted and measured.

    A run that ran out of memory has no measured time, whatever its row says.
    """
    groups: dict[tuple[Key, int], list[tuple[Judged, float, float | None]]] = {}
    for one in judged:
        tokens = one.run.tokens_per_step
        if one.step_time is None or tokens is None or one.run.seq is None:
            continue
        measured = None if one.run.step_time is None or one.run.oom == "1" else one.run.step_time / tokens
        groups.setdefault((key(one.run), one.run.seq), []).append((one, one.step_time / tokens, measured))
    return [groups[at] for at in sorted(groups)]


def _regret(group: Sequence[tuple[float, float]]) -> float:
    """Return the measured time of what is predicted fastest over the measured best, less 1."""
    fastest = min(predicted for predicted, _ in group)
    picked = [measured for predicted, measured in group if predicted == fastest]
    return fmean(picked) / min(measured for _, measured in group) - 1


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of the ranks, those of ties averaged; None if one of both is all ties."""
    one, other = ranks(first), ranks(second)
    centre = (len(one) + 1) / 2
    together = sum((a - centre) * (b - centre) for a, b in zip(one, other, strict=True))
    spread = sum((a - centre) ** 2 for a in one) * sum((b - centre) ** 2 for b in other)
    return together / spread**0.5 if spread else None


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            for at in order[start:end]:
                found[at] = (start + 1 + end) / 2
            start = end
    return found
