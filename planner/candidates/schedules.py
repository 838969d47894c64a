"""Which schedules are searched, with which numbers of chunks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.choices import allows, divisors
from planner.domain.framework import Framework
from planner.domain.job import ANY_SCHEDULE, Job
from planner.schedules import SCHEDULES, Schedule

CHUNKS_MAX = 8
"""Chunks of a stage up to which pipelines are searched, where no constraint names a number."""
EQUAL_STAGES = 8
"""Stages that such pipelines often have, 8, 16, ...: what more chunks than the fewest must leave possible with equal
layers."""


def find_schedules(job: Job, framework: Framework, target: Framework | None, num_layers: int) -> Iterator[Schedule]:
    """Yield the schedules that may be used, each with every number of chunks that may be tried."""
    for listed in SCHEDULES:
        if not _schedule_allowed(listed, job, framework, target):
            continue
        if listed.with_chunks is None:
            whole = num_layers % listed.virtual_stages == 0
            yield from [listed] if whole and allows(job.constraints, "vpp", listed.virtual_stages) else []
            continue
        possible = [chunks for chunks in divisors(num_layers)[1:] if 2 * chunks <= num_layers]
        for chunks in possible if _names_chunks(job) else _worthwhile(possible, num_layers):
            if allows(job.constraints, "vpp", chunks):
                yield listed.with_chunks(chunks)


def _names_chunks(job: Job) -> bool:
    return any(c.subject == "vpp" and (c.value != "1" or c.operator == "!=") for c in job.constraints)


def _worthwhile(chunks: list[int], num_layers: int) -> list[int]:
    """Return the numbers of chunks that are worth a family each: the fewest, and the most that let 8 be equal.

    More chunks fill and drain faster and hold less; fewer leave more ways to give stages unlike numbers of layers.
    """
    equal = [number for number in chunks if number <= CHUNKS_MAX and num_layers // number % EQUAL_STAGES == 0]
    return sorted({*chunks[:1], *equal[-1:]})


def _schedule_allowed(schedule: Schedule, job: Job, framework: Framework, target: Framework | None) -> bool:
    """Tell whether the job, and the target or else the framework, admit a schedule.

    Schedules that change what is computed are taken only when they are asked for by name; others that are given by
    their passes also where any is asked for, or the framework has a name for them.
    """
    asked = [c.value for c in job.constraints if c.subject == "schedule"]
    if schedule.changes_semantics and schedule.name not in asked:
        return False
    wanted = {schedule.name, ANY_SCHEDULE} & {*asked}
    if schedule.orders is not None and not wanted and (target or framework).name not in dict(schedule.runs_as):
        return False
    if target is not None and schedule.name not in target.can.schedules:
        return False
    return allows(job.constraints, "schedule", schedule.name)


def useful_schedules(schedules: list[Schedule], num_microbatches: int, *, pipelined: bool) -> list[Schedule]:
    """Return the schedules of which none before them says all: of one stage, or of several."""
    return (_of_several_stages if pipelined else _of_one_stage)(schedules, num_microbatches)


def _of_one_stage(schedules: list[Schedule], num_microbatches: int) -> list[Schedule]:
    """Return the schedules that can run a single stage, but none that holds as much as one before it.

    Such a stage does the same work in every order of its passes.
    """
    kept: list[Schedule] = []
    for schedule in schedules:
        if schedule.parts > 1 or schedule.blocker(1, 1):
            continue
        held = schedule.in_flight(0, 1, num_microbatches)
        if all(held < other.in_flight(0, 1, num_microbatches) for other in kept):
            kept.append(schedule)
    return kept


def _of_several_stages(schedules: list[Schedule], num_microbatches: int) -> list[Schedule]:
    """Return the schedules but those that run a single micro-batch as one before them does."""
    if num_microbatches > 1:
        return schedules
    kept: dict[object, Schedule] = {}
    for schedule in schedules:
        whole = schedule.parts == 1
        kept.setdefault((schedule.order(0, 2, 1), schedule.joins_steps) if whole else schedule, schedule)
    return list(kept.values())
