"""How often a schedule has sharded weights gathered, and how much of a stage at once (ZeRO 3)."""

from __future__ import annotations

from dataclasses import dataclass

from planner.schedules import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """What is gathered at once."""

    sharers: int = 1
    """Micro-batches that use what is gathered before it is freed, and whose gradients are scattered together."""
    chunks: int = 0
    """Of the stage, one of which is gathered whole; 0 where layers are gathered one by one."""


EACH_PASS = Gathering()
"""A layer at a time, for each pass of each micro-batch (Rajbhandari et al. 2020)."""


def gathering_of(schedule: Schedule, num_microbatches: int) -> Gathering:
    """Return what a schedule gathers at once: whole chunks, where all micro-batches pass one before the next."""
    return Gathering(sharers=num_microbatches, chunks=schedule.virtual_stages) if schedule.gathers_once else EACH_PASS
