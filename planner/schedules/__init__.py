"""The pipeline schedules, one file each; a new one is a file and a row of SCHEDULES."""

from planner.domain.plan import SEARCHED, Plan
from planner.schedules.base import (
    BACKWARD,
    FORWARD,
    INPUT,
    WEIGHT,
    Operation,
    Orders,
    Pass,
    Schedule,
    loop,
    most_held,
    operations,
    peak_in_flight,
    vee,
)
from planner.schedules.bitpipe import BITPIPE
from planner.schedules.breadth_first import BREADTH_FIRST
from planner.schedules.cells import cell, csv_text, read_rows, rows
from planner.schedules.chimera import CHIMERA
from planner.schedules.dualpipe import DUALPIPE
from planner.schedules.dualpipev import DUALPIPEV
from planner.schedules.found import ANY_ORDER, found_placement, found_schedule
from planner.schedules.gpipe import GPIPE
from planner.schedules.interleaved import INTERLEAVED
from planner.schedules.interleaved_zb import INTERLEAVED_ZB
from planner.schedules.one_f_one_b import ONE_F_ONE_B
from planner.schedules.outline import (
    SEARCHED_STAGES,
    Path,
    critical_paths,
    held_passes,
    open_microbatches,
    remainders,
    splits_backward,
)
from planner.schedules.pipedream import PIPEDREAM
from planner.schedules.pipedream_2bw import PIPEDREAM_2BW
from planner.schedules.spectrain import SPECTRAIN
from planner.schedules.v_half import V_HALF
from planner.schedules.v_min import V_MIN
from planner.schedules.xpipe import XPIPE
from planner.schedules.zb_h1 import ZB_H1
from planner.schedules.zb_h2 import ZB_H2
from planner.schedules.zbv import ZBV

SCHEDULES: tuple[Schedule, ...] = (
    ONE_F_ONE_B,
    GPIPE,
    INTERLEAVED,
    BREADTH_FIRST,
    ZB_H1,
    ZB_H2,
    INTERLEAVED_ZB,
    ZBV,
    V_HALF,
    V_MIN,
    DUALPIPE,
    DUALPIPEV,
    CHIMERA,
    BITPIPE,
    PIPEDREAM_2BW,
    PIPEDREAM,
    SPECTRAIN,
    XPIPE,
)


def schedule(name: str, virtual_stages: int = 0, group: int = 0) -> Schedule:
    """Return the schedule called `name`.

    With `virtual_stages` chunks a stage and micro-batches in groups of `group`, where these are given and it has them.

    Raises:
        KeyError: there is no such schedule.

    """
    found = {entry.name: entry for entry in SCHEDULES}[name]
    if found.with_chunks and virtual_stages:
        found = found.with_chunks(virtual_stages)
    return found.with_group(group) if found.with_group and group else found


def schedule_of(plan: Plan) -> Schedule:
    """Return the schedule of a plan, with the plan's chunks and groups, or its own order of passes."""
    if plan.schedule == SEARCHED:
        placement = found_placement(plan.order, plan.virtual_stages)
        return found_schedule(read_rows(plan.order), plan.virtual_stages, placement)
    return schedule(plan.schedule, plan.virtual_stages, plan.microbatch_group)


__all__ = [
    "ANY_ORDER",
    "BACKWARD",
    "FORWARD",
    "INPUT",
    "SCHEDULES",
    "SEARCHED_STAGES",
    "WEIGHT",
    "Operation",
    "Orders",
    "Pass",
    "Path",
    "Schedule",
    "cell",
    "critical_paths",
    "csv_text",
    "found_placement",
    "held_passes",
    "loop",
    "most_held",
    "open_microbatches",
    "operations",
    "peak_in_flight",
    "read_rows",
    "remainders",
    "rows",
    "schedule",
    "schedule_of",
    "splits_backward",
    "vee",
]
