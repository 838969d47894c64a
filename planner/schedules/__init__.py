"""The pipeline schedules, one file each; a new one is a file and a row of SCHEDULES."""

from planner.schedules.base import BACKWARD, FORWARD, Operation, Schedule, operations, peak_in_flight
from planner.schedules.gpipe import GPIPE
from planner.schedules.one_f_one_b import ONE_F_ONE_B

SCHEDULES: tuple[Schedule, ...] = (ONE_F_ONE_B, GPIPE)


def schedule(name: str) -> Schedule:
    """Return the schedule called `name`.

    Raises:
        KeyError: there is no such schedule.

    """
    return {entry.name: entry for entry in SCHEDULES}[name]


__all__ = ["BACKWARD", "FORWARD", "SCHEDULES", "Operation", "Schedule", "operations", "peak_in_flight", "schedule"]
