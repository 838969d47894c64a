"""DualPipeV: DualPipe cut in half, a V of two chunks a rank that holds the weights once.

Source: Sea AI Lab, "DualPipe could be better without the Dual" (2025), and github.com/deepseek-ai/DualPipe,
dualpipe/dualpipev.py; PyTorch has it as `ScheduleDualPipeV` (torch/distributed/pipelining/schedules.py, 2.13).
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules._dual import dual_passes
from planner.schedules.base import Orders, Pass, Schedule, counted, letters, vee


def _blocker(num_stages: int, num_microbatches: int) -> str:
    least = 2 * num_stages
    return f"needs {least} micro-batches or more; there are {num_microbatches}" if num_microbatches < least else ""


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    return tuple(
        tuple(
            Pass(kind, number, (2 * num_stages - 1 - rank) if phase else rank, 0, paired)
            for kind, phase, number, paired in dual_passes(rank, num_stages, num_microbatches)
        )
        for rank in range(num_stages)
    )


DUALPIPEV = Schedule(
    name="dualpipev",
    summary="dualpipe in a V of two chunks a rank: pairs of passes, and one copy of the weights",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    virtual_stages=2,
    placement=vee,
    runs_as=(("torchtitan", "DualPipeV"),),
    blocker=_blocker,
)
