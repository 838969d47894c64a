"""ZB-V: two chunks a rank in the shape of a V, with the memory of 1F1B and no idle time where passes take alike.

Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6; the order is that of PyTorch's
`ScheduleZBVZeroBubble` (torch/distributed/pipelining/schedules.py, 2.13). With fewer than 2 P - 1 micro-batches the
passes of those that are missing are left out.
"""

from __future__ import annotations

from functools import lru_cache

from planner.schedules.base import Orders, Pass, Schedule, counted, letters, vee


def _letters(rank: int, num_stages: int, num_microbatches: int) -> str:
    """Return the passes of a rank: capitals of its first chunk, small letters of its second."""
    lead, rest = 2 * (num_stages - rank) - 1, num_stages - rank
    text = "F" * lead + "fF" * rank + "fiw" * rest
    steady = num_microbatches - lead - rank
    text += "FIWfiw" * steady + "IWfiw" * (num_microbatches - steady - rank - rest)
    return text + "Ii" * rank + "IW" * rest + "w" * rank + "W" * rank


@lru_cache(maxsize=2)
def _orders(num_stages: int, num_microbatches: int) -> Orders:
    enough = max(num_microbatches, 2 * num_stages - 1)
    orders = []
    for rank in range(num_stages):
        seen: dict[str, int] = {}
        passes = []
        for letter in _letters(rank, num_stages, enough):
            microbatch = seen.get(letter, 0)
            seen[letter] = microbatch + 1
            if microbatch < num_microbatches:
                stage = rank if letter.isupper() else 2 * num_stages - 1 - rank
                passes.append(Pass(letter.upper(), microbatch, stage))
        orders.append(tuple(passes))
    return tuple(orders)


ZBV = Schedule(
    name="zbv",
    summary="two chunks a rank in a V, gradients of weights put off: idles least, holds what 1f1b does at most",
    in_flight=counted(_orders),
    order=letters(_orders),
    orders=_orders,
    changes_semantics=False,
    virtual_stages=2,
    placement=vee,
    runs_as=(("torchtitan", "ZBVZeroBubble"),),
)
