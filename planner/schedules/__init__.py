"""The pipeline schedules, one file each; a new one is a file and a row of SCHEDULES."""

from planner.schedules.base import BACKWARD, FORWARD, Operation, Schedule, operations, peak_in_flight
from planner.schedules.gpipe import GPIPE
from planner.schedules.interleaved import INTERLEAVED
from planner.schedules.one_f_one_b import ONE_F_ONE_B

SCHEDULES: tuple[Schedule, ...] = (ONE_F_ONE_B, GPIPE, INTERLEAVED)


def schedule(name: str, virtual_stages: int = 0) -> Schedule:
    """Return the schedule called `name`, with `virtual_stages` chunks a stage if it knows chunks and these are given.

    Raises:
        KeyError: there is no such schedule.

    """
    found = {entry.name: entry for entry in SCHEDULES}[name]
    return found.with_chunks(virtual_stages) if found.with_chunks and virtual_stages else found


__all__ = ["BACKWARD", "FORWARD", "SCHEDULES", "Operation", "Schedule", "operations", "peak_in_flight", "schedule"]
