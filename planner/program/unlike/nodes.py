"""Sets of plans with several kinds of pipelines, and how one is taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.candidates.unlike import Meeting
from planner.program.unlike.templates import Range

APART = 0.005
"""[-] of the step, by which exchanges of kinds may differ before they are told apart."""


@dataclass(frozen=True)
class Node:
    """Plans of a range: bounds on the replicas of all kinds together, and on their longest exchange."""

    meeting: Meeting
    within: Range
    bound: float
    """[ns]"""

    def parts(self, bound: float, syncs: Sequence[tuple[float, float]]) -> Iterator[Node]:
        """Yield its halves: of its exchanges where the kinds' are far apart, else of its replicas.

        Of a single number of replicas it is halved below an exchange that was met, as long as there are any.

        Args:
            bound: [ns] below which none of its plans lies.
            syncs: [ns] shortest and longest exchange of the kinds in each plan that was met, the last one last.

        """
        within = self.within
        shortest, longest = syncs[-1] if syncs else (0.0, 0.0)
        apart = (max(shortest, within.sync_low) + longest) / 2
        if longest - max(shortest, within.sync_low) > APART * bound:
            yield replace(self, within=replace(within, sync_high=apart), bound=bound)
            yield replace(self, within=replace(within, sync_low=apart), bound=bound)
        elif within.fewest < within.most:
            middle = (within.fewest + within.most) // 2
            yield replace(self, within=replace(within, most=middle), bound=bound)
            yield replace(self, within=replace(within, fewest=middle + 1), bound=bound)
        elif met := [sync for _, sync in syncs if within.sync_low < sync <= within.sync_high]:
            yield replace(self, within=replace(within, sync_high=min(met) - 1), bound=bound)
            yield replace(self, within=replace(within, sync_low=min(met)), bound=bound)
