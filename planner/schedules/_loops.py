"""Orders of schedules whose virtual stages go round in loops: rank r holds stages r, P + r, 2 P + r, and so on."""

from __future__ import annotations

from planner.schedules.base import BACKWARD, FORWARD, INPUT, WEIGHT, Pass

Turn = tuple[int, int]
"""(chunk, micro-batch) of a forward pass; the backward pass of the same number runs the chunk counted from the last."""


def turns(chunks: int, num_microbatches: int, group: int) -> list[Turn]:
    """Return the forward passes of a rank: `group` micro-batches through one chunk after the other, then the next."""
    starts = range(0, num_microbatches, group)
    return [
        (chunk, microbatch)
        for first in starts
        for chunk in range(chunks)
        for microbatch in range(first, min(first + group, num_microbatches))
    ]


def split_order(there: list[Turn], rank: int, num_stages: int, warm_up: int, delay: int) -> tuple[Pass, ...]:
    """Return `warm_up` forward passes, then forward and backward in turn, every W `delay` backward passes late."""
    made = [Pass(FORWARD, microbatch, chunk * num_stages + rank) for chunk, microbatch in there[:warm_up]]
    last = there[-1][0]
    back = [(microbatch, (last - chunk) * num_stages + rank) for chunk, microbatch in there]
    for number in range(len(there)):
        if number + warm_up < len(there):
            chunk, microbatch = there[number + warm_up]
            made.append(Pass(FORWARD, microbatch, chunk * num_stages + rank))
        made.append(Pass(INPUT, *back[number]))
        if number >= delay:
            made.append(Pass(WEIGHT, *back[number - delay]))
    made += [Pass(WEIGHT, *one) for one in back[max(0, len(back) - delay) :]]
    return tuple(made)


def whole_order(there: list[Turn], rank: int, num_stages: int, warm_up: int) -> tuple[Pass, ...]:
    """Return `warm_up` forward passes, then forward and whole backward passes in turn."""
    made = [Pass(FORWARD, microbatch, chunk * num_stages + rank) for chunk, microbatch in there]
    last = there[-1][0]
    back = [Pass(BACKWARD, microbatch, (last - chunk) * num_stages + rank) for chunk, microbatch in there]
    steady = [one for pair in zip(made[warm_up:], back, strict=False) for one in pair]
    return (*made[:warm_up], *steady, *back[len(made) - warm_up :])


def whole_groups(num_stages: int, num_microbatches: int) -> str:
    """Return why micro-batches cannot go in groups of one a stage; empty if they can."""
    if num_stages < 2:
        return "needs at least 2 stages"
    if num_microbatches % num_stages:
        return f"needs micro-batches in groups of {num_stages}, one a stage; {num_microbatches} are no whole groups"
    return ""
