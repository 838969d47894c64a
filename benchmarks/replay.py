"""Times the replay of schedules that are given by their passes, as multiples of the import of the solver.

The import (`from ortools.sat.python import cp_model`) runs in a fresh interpreter, the replays in this process; each is
the median over the rounds. Slow is not an error: the exit code is 0.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from planner.schedules import Schedule, schedule
from planner.simulate import StageTimes, replay_orders

YARDSTICK = (sys.executable, "-c", "from ortools.sat.python import cp_model")


@dataclass(frozen=True)
class Case:
    """A pipeline, and the multiple of the yardstick that its replay should stay below."""

    name: str
    chunks: int
    stages: int
    microbatches: int
    target: float
    """[-]; 0 where there is none."""

    @property
    def schedule(self) -> Schedule:
        """The schedule, nothing of it made yet."""
        return schedule(self.name, self.chunks)


CASES = (
    Case("interleaved-zb", 4, 64, 512, 6),
    Case("breadth-first", 4, 64, 512, 6),
    Case("v-min", 0, 64, 512, 6),
    Case("bitpipe", 0, 64, 512, 6),
    Case("dualpipe", 0, 64, 512, 6),
    Case("zb-h1", 0, 256, 4096, 0),
)
SMOKE = (Case("bitpipe", 0, 8, 32, 6),)


def seconds(case: Case) -> float:
    """Return the time of making and running all passes once, with unlike stages and links."""
    listed = case.schedule
    assert listed.orders is not None
    getattr(listed.orders, "cache_clear", int)()
    times = {
        place: StageTimes(forward=1.0 + 0.01 * (place[1] % 7), backward=2.0, weight=0.9, sync=1.0)
        for hosted in listed.hosted(case.stages)
        for place in hosted
    }
    near = (-1, 1, case.stages - 1, 1 - case.stages)
    links = {(one, one + step): 0.1 for one in range(case.stages) for step in near if 0 <= one + step < case.stages}
    started = time.perf_counter()
    replay_orders(listed, times, links, [1.0] * case.stages, case.microbatches)
    return time.perf_counter() - started


def imported() -> float:
    """Return the time of the import."""
    started = time.perf_counter()
    subprocess.run(YARDSTICK, check=True)
    return time.perf_counter() - started


def main() -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description="Times the replay of schedules as multiples of the solver's import.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="one small case, once")
    asked = parser.parse_args()
    cases, rounds = (SMOKE, 1) if asked.smoke else (CASES, asked.rounds)
    yardstick = statistics.median(imported() for _ in range(rounds))
    print(f"{'schedule':<16} {'stages x micro-batches x v':<28} {'median':>9} {'ratio':>8} {'target':>8}")
    for case in cases:
        taken = statistics.median(seconds(case) for _ in range(rounds))
        shape = f"{case.stages} x {case.microbatches} x {case.schedule.virtual_stages}"
        target = f"{case.target:.0f}x" if case.target else "-"
        print(f"{case.name:<16} {shape:<28} {taken:>7.2f} s {taken / yardstick:>7.2f}x {target:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
