"""Counts closed-form predictions a second, in one process: many layouts as arrays beside one after the other.

Two workloads: a million layouts of one model on one cluster, and the measured runs in tests/accuracy/data, which are of
many models, machines and frameworks, with and without the time that stacking them takes. Figures are also given as
multiples of a loop that prices the same layouts one by one, so that they can be compared between machines. Slow is not
an error: the exit code is 0.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.accuracy.batch import batches
from planner.accuracy.judge import judge_runs
from planner.accuracy.runs import read_runs
from planner.accuracy.setting import Setting, setting
from planner.costs.uniform import Kind, Uniform, UniformCost, uniform_cost
from planner.domain.plan import Strategy

DATA = Path(__file__).resolve().parent.parent / "tests" / "accuracy" / "data"
GRID = 1_000_000
"""[-] layouts of one model on one cluster."""
PART = 10_000
"""[-] layouts priced at once; arrays of this length stay in the processor's cache."""
REPEATS = 20
"""[-] how often the mixed set holds each measured run."""
LOOP = 500
"""[-] layouts that the loop prices one by one; its rate does not depend on their number."""

Groups = list[tuple[Kind, Uniform]]
"""Layouts that are priced together, as arrays."""


def measured_settings(repeats: int) -> list[Setting]:
    """Return what the measured runs ran, those that can be judged, each `repeats` times as values of its own."""
    runs = read_runs([str(path) for path in sorted(DATA.glob("*.csv"))])
    good = [one.run for one in judge_runs(runs, 0.0) if not one.reason]
    return [setting(run) for run in good * repeats]


def grid(base: Setting, number: int, seed: int = 0) -> Groups:
    """Return `number` layouts of the model and machine of `base`: degrees and batches drawn, in parts."""
    draw = np.random.default_rng(seed)
    layers = base.layout.model.num_layers
    parts = []
    for start in range(0, number, PART):
        size = min(PART, number - start)
        tensor, replicas = (2.0 ** draw.integers(low, high, size) for low, high in ((1, 4), (0, 6)))
        stages = draw.integers(2, layers // 2, size).astype(float)
        least, more = np.floor_divide(layers, stages), np.ceil(layers / stages)
        layout = replace(
            base.layout,
            strategy=Strategy(degrees=(("tp", tensor), ("cp", 1)), sequence_parallel=True),  # type: ignore[arg-type]
            micro_batch=2.0 ** draw.integers(0, 3, size),
            num_replicas=replicas,
            num_microbatches=draw.integers(1, 257, size).astype(float),
            num_stages=stages,
            virtual_stages=1,
            first_layers=more,
            second_layers=more,
            middle_layers=more,
            middle_place=1,
            last_layers=least,
        )
        parts.append((replace(base.kind, single_stage=False), layout))
    return parts


def grouped(settings: Sequence[Setting]) -> Groups:
    """Return settings as arrays, those of the same structure together."""
    return [(batch.kind, batch.layouts) for batch in batches(settings)]


def priced(groups: Groups) -> list[UniformCost]:
    """Return the costs of all layouts, their memory summed up as well."""
    costs = [uniform_cost(kind, layout) for kind, layout in groups]
    for cost in costs:
        _ = cost.peak_memory
    return costs


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least time [s] that `work` takes in `rounds` tries: what disturbs it only adds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description="Counts closed-form predictions a second in one process.")
    parser.add_argument("--rounds", type=int, default=3, help="tries, of which the best counts (default 3)")
    parser.add_argument("--smoke", action="store_true", help="a hundredth of the layouts, once")
    options = parser.parse_args()
    rounds = 1 if options.smoke else max(options.rounds, 1)
    scale = 100 if options.smoke else 1
    mixed = measured_settings(max(1, REPEATS // scale))
    one_by_one: Groups = [(item.kind, item.layout) for item in mixed[: max(1, LOOP // scale)]]
    loop = len(one_by_one) / seconds(lambda: priced(one_by_one), rounds)
    parts = grid(mixed[0], GRID // scale)
    groups = grouped(mixed)
    figures = [
        ("one by one", len(one_by_one), loop),
        ("one model and cluster, arrays", GRID // scale, GRID // scale / seconds(lambda: priced(parts), rounds)),
        ("measured runs, stacked before", len(mixed), len(mixed) / seconds(lambda: priced(groups), rounds)),
        ("measured runs, stacking included", len(mixed), len(mixed) / seconds(lambda: priced(grouped(mixed)), rounds)),
    ]
    print(f"{'layouts':<34} {'number':>9} {'a second':>11} {'ratio':>8}")
    for name, number, rate in figures:
        print(f"{name:<34} {number:>9,} {rate:>11,.0f} {rate / loop:>7.0f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
