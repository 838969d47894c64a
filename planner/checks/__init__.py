"""What must hold of any plan, whoever made it; one rule a file, and a new one is a file and a row of CHECKS."""

from collections.abc import Collection
from dataclasses import replace

from planner.checks.base import Check, Context, StageMemory
from planner.checks.batch import BATCH
from planner.checks.degrees import DEGREES
from planner.checks.demands import DEMANDS
from planner.checks.devices import DEVICES
from planner.checks.frameworks import refusals, runs_on
from planner.checks.layers import LAYERS
from planner.checks.memory import MEMORY
from planner.checks.order import ORDER
from planner.checks.precision import PRECISION
from planner.checks.profile import PROFILE, other_profiles
from planner.checks.schedule import SCHEDULE
from planner.errors import Problem

CHECKS: tuple[Check, ...] = (LAYERS, BATCH, SCHEDULE, ORDER, DEGREES, DEVICES, PRECISION, PROFILE, MEMORY, DEMANDS)


def run_checks(context: Context, names: Collection[str] = ()) -> tuple[Problem, ...]:
    """Return everything that is wrong with the plan of `context`, or what the checks called `names` find."""
    chosen = [check for check in CHECKS if not names or check.name in names]
    return tuple(replace(problem, code=check.code) for check in chosen for problem in check.check(context))


__all__ = ["CHECKS", "Check", "Context", "StageMemory", "other_profiles", "refusals", "run_checks", "runs_on"]
