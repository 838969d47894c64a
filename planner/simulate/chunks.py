"""Ranks that hold several chunks of layers: the last one hands each micro-batch on to the first one's next chunk.

All ranks run the same passes in the same order, k = 0, 1, ... each way, micro-batches in groups of as many as there are
ranks. So what the last rank sends in pass k is what the first one takes in pass k + P, and inboxes stay in order.
"""

# ruff: noqa: FURB136 (a call of max costs more than the pass that it would time)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.schedules import FORWARD, Schedule
from planner.simulate.rank import Rank

Pass = tuple[float, float | None]
"""[ticks] time of a pass and of the transfer of its result; None where nobody waits for it."""


@dataclass(slots=True)
class ChunkedRank(Rank):
    """One stage of several chunks at work; `forward` and `backward` are all chunks together."""

    forward_passes: list[Pass] = field(default_factory=list)
    """The passes of one round of P v, which repeat."""
    backward_passes: list[Pass] = field(default_factory=list)

    def advance(self, limit: int) -> bool:
        """Run passes until one's input is missing, or up to `limit` passes in all; return whether any ran."""
        free, forward_link, backward_link = self.free, self.forward_link, self.backward_link
        num_forward, num_backward = self.num_forward, self.num_backward
        forward_inbox, backward_inbox = self.forward_inbox, self.backward_inbox
        forward_passes, backward_passes, turn = self.forward_passes, self.backward_passes, len(self.forward_passes)
        for kind in self.order[self.position : limit]:
            if kind == FORWARD:
                if num_forward == len(forward_inbox):
                    break
                arrival = forward_inbox[num_forward]
                time, hop = forward_passes[num_forward % turn]
                num_forward += 1
                free = (arrival if arrival > free else free) + time
                if hop is not None:
                    forward_link = (free if free > forward_link else forward_link) + hop
                self.forward_outbox.append(0.0 if hop is None else forward_link)
            else:
                if num_backward == len(backward_inbox):
                    break
                arrival = backward_inbox[num_backward]
                time, hop = backward_passes[num_backward % turn]
                num_backward += 1
                free = (arrival if arrival > free else free) + time
                if hop is not None:
                    backward_link = (free if free > backward_link else backward_link) + hop
                self.backward_outbox.append(0.0 if hop is None else backward_link)
        ran = num_forward - self.num_forward + num_backward - self.num_backward
        self.position += ran
        self.free, self.forward_link, self.backward_link = free, forward_link, backward_link
        self.num_forward, self.num_backward = num_forward, num_backward
        return ran > 0


def chunked_ranks(schedule: Schedule, orders: Sequence[str], times: Sequence[Sequence[float]]) -> Sequence[Rank]:
    """Return ranks in a ring.

    Args:
        schedule: tells which chunk each pass runs.
        orders: the passes of each rank.
        times: [ticks] forward, backward, transfers forward and backward, in the order of the layers: all first chunks,
            then all second ones, and so on.

    """
    forward, backward, hops_forward, hops_backward = times
    num_stages, chunks = len(orders), schedule.virtual_stages
    round_of = [schedule.chunk(index, num_stages) for index in range(num_stages * chunks)]
    ranks = []
    for stage, order in enumerate(orders):
        there = [chunk * num_stages + stage for chunk in round_of]
        back = [(chunks - 1 - chunk) * num_stages + stage for chunk in round_of]
        rank = ChunkedRank(order, sum(forward[stage::num_stages]), sum(backward[stage::num_stages]), 0.0, 0.0)
        rank.forward_passes = [(forward[at], hops_forward[at] if at < len(hops_forward) else None) for at in there]
        rank.backward_passes = [(backward[at], hops_backward[at - 1] if at else None) for at in back]
        ranks.append(rank)
    for rank, following in zip(ranks, [*ranks[1:], ranks[0]], strict=True):
        rank.forward_outbox, following.backward_outbox = following.forward_inbox, rank.backward_inbox
    # the first group of micro-batches waits for nothing; a later one takes the place of one that has left
    ranks[0].forward_inbox.extend([0.0] * num_stages)
    ranks[-1].backward_inbox.extend([0.0] * num_stages)
    return ranks
