"""The order of DualPipe's ranks: two phases, of which one goes ahead and the other comes back.

Source: github.com/deepseek-ai/DualPipe (2025), dualpipe/dualpipe.py, whose eight steps follow one another here;
DualPipeV (dualpipe/dualpipev.py) is the same with half of the ranks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from planner.schedules.base import BACKWARD, FORWARD, INPUT, WEIGHT


def dual_passes(rank: int, num_ranks: int, num_microbatches: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield (kind, phase, number, paired) of the passes of a rank, 0 being the one at which phase 0 begins.

    Args:
        rank: of the first half of the ranks in DualPipe, of all of them in DualPipeV.
        num_ranks: so many.
        num_microbatches: of each phase, at least twice as many.

    """
    seen = {(kind, phase): 0 for kind in (FORWARD, BACKWARD) for phase in (0, 1)}
    waiting: deque[tuple[int, int]] = deque()
    for kind, phase, paired in _steps(rank, num_ranks, num_microbatches):
        if kind == WEIGHT:
            yield (WEIGHT, *waiting.popleft(), paired)
            continue
        way = FORWARD if kind == FORWARD else BACKWARD
        number = seen[way, phase]
        seen[way, phase] += 1
        if kind == INPUT:
            waiting.append((phase, number))
        yield kind, phase, number, paired


def _steps(rank: int, num_ranks: int, num_microbatches: int) -> Iterator[tuple[str, int, bool]]:
    """Yield kind, phase and pairing of every pass; W takes the oldest that waits, of whichever phase."""
    ahead, behind = num_ranks - rank - 1, rank + 1
    there, back = [(FORWARD, 0, True), (BACKWARD, 1, False)], [(FORWARD, 1, True), (BACKWARD, 0, False)]
    yield from [(FORWARD, 0, False)] * (2 * ahead)
    yield from [(FORWARD, 0, False), (FORWARD, 1, False)] * behind
    yield from [(INPUT, 1, False), (WEIGHT, 1, False), (FORWARD, 1, False)] * ahead
    steady = num_microbatches - 2 * num_ranks + rank + 1
    if ahead == 0:  # where the phases meet, the first pair would only delay the ranks around
        yield from [(FORWARD, 0, False), (BACKWARD, 1, False), *back]
        steady -= 1
    yield from [*there, *back] * steady
    yield from [(BACKWARD, 1, False), *back] * ahead
    for number in range(behind):
        # the second half of the passes is split: from the half on, or one pass later, in turn from rank to rank
        yield INPUT if number >= behind // 2 + (rank + 1) % 2 else BACKWARD, 1, False
        yield INPUT if number >= behind // 2 else BACKWARD, 0, False
    yield from [(WEIGHT, 0, False), (INPUT, 0, False)] * ahead
    yield from [(WEIGHT, 0, False)] * behind
