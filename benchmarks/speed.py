"""Times whole commands as multiples of what starting the solver costs, so that figures compare between machines.

Every round runs the yardstick (`import cp_model` in a fresh interpreter) and then each command once. The median over
the rounds of command / yardstick is printed beside its target. Slow is not an error: the exit code is 0 unless a
command fails.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

YARDSTICK = (sys.executable, "-c", "from ortools.sat.python import cp_model")

PLANNER = str(Path(sys.executable).parent / "planner")
"""the command of the environment that runs this script"""

LAST_WORDS = 15
"""[lines] of a failed command that are shown"""


@dataclass(frozen=True)
class Case:
    """A command and the multiple of its yardstick that it should stay below."""

    name: str
    arguments: str
    target: float
    """[-] multiple of the yardstick"""
    yardstick: str = ""
    """name of the case to measure against; empty for the import of the solver"""
    cheap: bool = False
    """run by --smoke"""


CASES = (
    Case("help", "--help", 0.5, cheap=True),
    Case("show devices", "show devices", 0.5, cheap=True),
    Case("check", "check docs/examples/llama-3-70b.sh", 0.5, cheap=True),
    Case("check, predicted", "check docs/examples/llama-3-70b.sh --cluster 8x8:h100-sxm-80gb --no-search", 0.5),
    Case("check 500 files", f"check {'docs/examples/llama-3-70b.sh ' * 500}", 20, yardstick="check"),
    Case("8 devices", "plan 1x8:h100-sxm-80gb model_specs/llama-3-8b.json --no-references", 3),
    Case("1,024 devices", "plan cluster_specs/dgx-h100-128.yaml model_specs/llama-3-70b.json --no-references", 6),
    Case(
        "1,024, torchtitan",
        "plan cluster_specs/dgx-h100-128.yaml model_specs/llama-3-70b.json --for torchtitan --no-references",
        20,
    ),
    Case(
        "128, any schedule",
        "plan 16x8:a100-sxm-80gb model_specs/llama-3-70b.json --schedule any --no-references",
        60,
    ),
    Case(
        "1,792 of 3 kinds",
        "plan cluster_specs/mixed-h100-a100-l40s.yaml model_specs/llama-3-405b.json --no-references",
        20,
    ),
    Case(
        "98,304 devices",
        "plan cluster_specs/h100-98304.yaml model_specs/llama-3-70b.json --global-batch 98304 --no-references",
        4,
        yardstick="1,024 devices",
    ),
    Case("1,024, 405B", "plan cluster_specs/dgx-h100-128.yaml model_specs/llama-3-405b.json --no-references", 6),
    Case(
        "98,304, 405B",
        "plan cluster_specs/h100-98304.yaml model_specs/llama-3-405b.json --global-batch 98304 --no-references",
        4,
        yardstick="1,024, 405B",
    ),
)


class CommandFailedError(Exception):
    """A command that should work did not."""


def seconds(command: tuple[str, ...]) -> float:
    """Return the time that `command` takes from its start to its end.

    Raises:
        CommandFailedError: it is not installed, or ended with another exit code than 0.
    """
    # Bytecode is kept, as it is where the planner is installed, whatever this environment says.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as missing:
        message = f"{command[0]} is not there: install the planner into this environment first (make bench does)"
        raise CommandFailedError(message) from missing
    taken = time.perf_counter() - started
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_WORDS:])
        message = f"{' '.join(command)} ended with exit code {done.returncode}\n{last}"
        raise CommandFailedError(message)
    return taken


def measure(cases: tuple[Case, ...], rounds: int) -> dict[str, list[float]]:
    """Return the times of every case, and of the import under the empty name, one a round."""
    times: dict[str, list[float]] = {name: [] for name in ("", *(case.name for case in cases))}
    for command in (YARDSTICK, *((PLANNER, *case.arguments.split()) for case in cases if case.cheap)):
        seconds(command)  # fills the caches of the file system and of bytecode
    for _ in range(rounds):
        times[""].append(seconds(YARDSTICK))
        for case in cases:
            times[case.name].append(seconds((PLANNER, *case.arguments.split())))
    return times


def table(cases: tuple[Case, ...], times: dict[str, list[float]]) -> str:
    """Return the ratios beside their targets, as text."""
    lines = [f"{'command':<18} {'median':>9} {'ratio':>8} {'target':>8}  against"]
    for case in cases:
        base = case.yardstick if case.yardstick in times else ""
        ratio = statistics.median(a / b for a, b in zip(times[case.name], times[base], strict=True))
        verdict = "" if ratio <= case.target else "  over the target"
        against = base or "import of the solver"
        median = statistics.median(times[case.name])
        lines.append(f"{case.name:<18} {median:>7.2f} s {ratio:>7.2f}x {case.target:>7.1f}x  {against}{verdict}")
    lines.append(f"{'(the import itself)':<18} {statistics.median(times['']):>7.2f} s")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description="Times whole commands as multiples of the import of the solver.")
    parser.add_argument("--rounds", type=int, default=5, help="runs of every command (default 5)")
    parser.add_argument("--smoke", action="store_true", help="one run of the cheapest")
    options = parser.parse_args()
    cases = tuple(case for case in CASES if case.cheap or not options.smoke)
    try:
        times = measure(cases, 1 if options.smoke else max(options.rounds, 1))
    except CommandFailedError as failure:
        print(failure, file=sys.stderr)
        return 1
    print(table(cases, times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
