"""Ranks at work: each runs its passes in order, one at a time, as their inputs arrive."""

# ruff: noqa: FURB136 (a call of max costs more than the pass that it would time)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.schedules import FORWARD


@dataclass(slots=True)
class Rank:
    """One stage at work. All times are in ticks, of whatever length."""

    order: str
    forward: float
    backward: float
    hop_forward: float
    hop_backward: float
    forward_inbox: list[float] = field(default_factory=list)
    """Arrivals of the inputs of forward passes, in the order of their micro-batches."""
    backward_inbox: list[float] = field(default_factory=list)
    position: int = 0
    free: float = 0.0
    """When the compute lane is free."""
    forward_link: float = 0.0
    """When the link to the next stage is free."""
    backward_link: float = 0.0
    num_forward: int = 0
    """Entries of the inbox that have been used."""
    num_backward: int = 0
    forward_outbox: list[float] = field(default_factory=list)
    """The next stage's inbox."""
    backward_outbox: list[float] = field(default_factory=list)

    def advance(self, limit: int) -> bool:
        """Run passes until one's input is missing, or up to `limit` passes in all; return whether any ran."""
        free, forward_link, backward_link = self.free, self.forward_link, self.backward_link
        num_forward, num_backward = self.num_forward, self.num_backward
        forward_inbox, backward_inbox = self.forward_inbox, self.backward_inbox
        for kind in self.order[self.position : limit]:
            if kind == FORWARD:
                if num_forward == len(forward_inbox):
                    break
                arrival = forward_inbox[num_forward]
                num_forward += 1
                free = (arrival if arrival > free else free) + self.forward
                forward_link = (free if free > forward_link else forward_link) + self.hop_forward
                self.forward_outbox.append(forward_link)
            else:
                if num_backward == len(backward_inbox):
                    break
                arrival = backward_inbox[num_backward]
                num_backward += 1
                free = (arrival if arrival > free else free) + self.backward
                backward_link = (free if free > backward_link else backward_link) + self.hop_backward
                self.backward_outbox.append(backward_link)
        ran = num_forward - self.num_forward + num_backward - self.num_backward
        self.position += ran
        self.free, self.forward_link, self.backward_link = free, forward_link, backward_link
        self.num_forward, self.num_backward = num_forward, num_backward
        return ran > 0

    def pending(self) -> tuple[list[float], list[float]]:
        """Return the arrivals [ticks] that have not been used, no earlier than the lane could use them."""
        free = self.free
        forward, backward = self.forward_inbox[self.num_forward :], self.backward_inbox[self.num_backward :]
        return [max(free, arrival) for arrival in forward], [max(free, arrival) for arrival in backward]


def run(ranks: Sequence[Rank], limit: int) -> bool:
    """Run every rank up to `limit` passes in all; return False if no pass can run before that."""
    waiting = [rank for rank in ranks if rank.position < limit]
    while waiting:
        ran = [rank.advance(limit) for rank in waiting]
        if not any(ran):
            return False
        waiting = [rank for rank in reversed(waiting) if rank.position < limit]
    return True


def waiting_for(ranks: Sequence[Rank]) -> list[str]:
    """Return what each unfinished rank waits for."""
    texts = []
    for stage, rank in enumerate(ranks):
        if rank.position < len(rank.order):
            kind = rank.order[rank.position]
            texts.append(f"stage {stage} waits for the input of {kind}{rank.order[: rank.position].count(kind)}")
    return texts
