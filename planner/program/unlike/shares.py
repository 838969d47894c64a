"""How a batch is shared out to kinds of pipelines within a step of a given length: relaxed, and in whole numbers.

With m_r(T) the most micro-batches of template r within a step T, each group g chooses a template r and a number of
replicas x, and

    sum_g x_g b_r m_r(T) >= B,   low <= sum_g x_g <= high

is necessary for a plan of `low` to `high` replicas. Its Lagrangian in the number of replicas falls apart by groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.program.unlike.templates import Template, Templates

PRICES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""[-] prices of a replica that are tried, either sign, in samples of the best template."""
MOST_COMBINATIONS = 200_000
"""Combinations of templates and numbers of replicas up to which all of them are tried."""
MOST_NUMBERS = 32
"""Numbers of replicas of a template up to which all of them are tried."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a group does: a template, its replicas, and the micro-batches of all of them together."""

    template: int
    replicas: int
    microbatches: int

    @property
    def most(self) -> int:
        """Micro-batches of a replica that has the most."""
        return -(-self.microbatches // self.replicas)


@dataclass(frozen=True, slots=True)
class Option:
    """A template with a number of replicas, and the samples that they manage at least and at most."""

    template: int
    replicas: int
    samples: int
    """Of a micro-batch."""
    fewest: int
    most: int


def relaxed(groups: Sequence[Templates], limit: float, batch: int, low: int, high: int) -> bool:
    """Tell whether `low` to `high` replicas may manage a batch within `limit` [ns]; False is proved."""
    rates = []
    for group in groups:
        managed = (group.samples * group.batches(limit)).astype(float)
        most = np.minimum(group.most, high - len(groups) + 1)
        usable = (managed > 0) & (group.fewest <= most)
        if not usable.any():
            return False
        rates.append((managed[usable], group.fewest[usable], most[usable]))
    scale = max(float(managed.max()) for managed, _, _ in rates)
    for price in (sign * step * scale for step in PRICES for sign in ((1,) if step == 0 else (1, -1))):
        total = -price * (low if price > 0 else high)
        for managed, fewest, most in rates:
            worth = managed + price
            total += float(np.where(worth > 0, most * worth, fewest * worth).max())
        if total < batch * (1 - 1e-12):
            return False
    return True


def share_out(
    groups: Sequence[Templates],
    limit: float,
    batch: int,
    admitted: Callable[[Sequence[tuple[Template, int]]], bool],
    high: int,
) -> tuple[tuple[Share, ...] | None, bool]:
    """Return shares that make up the batch within `limit` [ns], None if none were found; and whether that is proved.

    Few combinations are all tried, those with the most to spare first. Of many, those that manage the most are.
    """
    managed = [group.managed(limit, high - len(groups) + 1) for group in groups]
    most = [int(each.max(initial=0)) for each in managed]
    options = [
        _options(group, limit, each >= max(1, batch - (sum(most) - best)), high - len(groups) + 1)
        for group, each, best in zip(groups, managed, most, strict=True)
    ]
    if not all(options):
        return None, True
    every = prod(len(each) for each in options) <= MOST_COMBINATIONS
    tried = all(bool((group.most - group.fewest < MOST_NUMBERS).all()) for group in groups)
    for chosen in _every(options, batch) if every else _best(options, batch, high):
        if not admitted(
            [(group.listed[one.template], one.replicas) for group, one in zip(groups, chosen, strict=True)]
        ):
            continue
        counts = _whole(chosen, batch)
        if counts is not None:
            return tuple(
                Share(one.template, one.replicas, count) for one, count in zip(chosen, counts, strict=True)
            ), True
    return None, every and tried


def _options(group: Templates, limit: float, useful: NDArray[np.bool_], most: int) -> list[Option]:
    """Return what a group may do: for each number of replicas and each micro-batch the template that manages most.

    And beside it the one with the fewest stages, which may work on fewer micro-batches. Of many numbers of replicas
    some are tried, among them those that use up the group.
    """
    batches = group.batches(limit)
    found: dict[tuple[int, int], list[Option]] = {}
    indices = np.flatnonzero(useful)
    for index in indices[np.argsort(-batches[indices], kind="stable")].tolist():
        samples, stages = int(group.samples[index]), int(group.stages[index])
        fewest, largest = int(group.fewest[index]), min(int(group.most[index]), most)
        for replicas in _numbers(fewest, largest):
            option = Option(index, replicas, samples, replicas * stages, replicas * int(batches[index]))
            known = found.setdefault((replicas, samples), [])
            if all(option.most > one.most or option.fewest < one.fewest for one in known):
                known.append(option)
    return [option for known in found.values() for option in known]


def _numbers(fewest: int, most: int) -> Iterable[int]:
    """Return all numbers of replicas that are tried: all of few, and of many as many."""
    if most - fewest < MOST_NUMBERS:
        return range(fewest, most + 1)
    return sorted({fewest + (most - fewest) * step // MOST_NUMBERS for step in range(MOST_NUMBERS + 1)})


def _every(options: Sequence[Sequence[Option]], batch: int) -> Iterator[tuple[Option, ...]]:
    """Yield the combinations that manage the batch, those with the most to spare first."""
    managed = np.zeros(1, dtype=np.int64)
    for each in options:
        managed = np.add.outer(managed, [one.samples * one.most for one in each]).ravel()
    able = np.flatnonzero(managed >= batch)
    shape = tuple(len(each) for each in options)
    for index in able[np.argsort(-managed[able], kind="stable")].tolist():
        at = np.unravel_index(index, shape)
        yield tuple(each[int(where)] for each, where in zip(options, at, strict=True))


def _best(options: Sequence[Sequence[Option]], batch: int, high: int) -> Iterator[tuple[Option, ...]]:
    """Yield for each number of replicas the combination that manages most, the best first."""
    best: dict[int, tuple[int, tuple[Option, ...]]] = {0: (0, ())}
    for each in options:
        grown: dict[int, tuple[int, tuple[Option, ...]]] = {}
        for (number, (managed, chosen)), one in product(best.items(), each):
            replicas, total = number + one.replicas, managed + one.samples * one.most
            if replicas <= high and total > grown.get(replicas, (0, ()))[0]:
                grown[replicas] = (total, (*chosen, one))
        best = grown
    for managed, chosen in sorted(best.values(), key=lambda value: -value[0]):
        if managed >= batch:
            yield chosen


def _whole(chosen: Sequence[Option], batch: int) -> tuple[int, ...] | None:
    """Return micro-batches of each option that make up the batch, near to equal shares of what each manages."""
    order = sorted(range(len(chosen)), key=lambda index: -chosen[index].samples)
    managed = sum(one.samples * one.most for one in chosen)
    counts = [0] * len(chosen)

    def fill(place: int, left: int) -> bool:
        one = chosen[order[place]]
        if place == len(order) - 1:
            count, rest = divmod(left, one.samples)
            counts[order[place]] = count
            return not rest and one.fewest <= count <= one.most
        target = min(one.most, max(one.fewest, -(-one.most * batch // managed)))
        later = [chosen[index] for index in order[place + 1 :]]
        least = sum(other.samples * other.fewest for other in later)
        most = sum(other.samples * other.most for other in later)
        lowest = max(one.fewest, -(-(left - most) // one.samples))
        highest = min(one.most, (left - least) // one.samples)
        tried = sorted(range(lowest, highest + 1), key=lambda count: abs(count - target))
        for count in tried[: 2 * chosen[order[0]].samples + 2]:
            counts[order[place]] = count
            if fill(place + 1, left - count * one.samples):
                return True
        return False

    return tuple(counts) if fill(0, batch) else None
