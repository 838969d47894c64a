"""What a long computation tells whoever waits for it."""

from __future__ import annotations


class Reporter:
    """Is told how a search goes; does nothing by default."""

    def progress(self, phase: str, open_sets: int, best: float, bound: float) -> None:
        """Hear of a step.

        Args:
            phase: what is being done.
            open_sets: sets of plans that are not excluded yet.
            best: [s] step time of the best plan so far, infinite without one.
            bound: [s] below which no plan's step time lies.

        """
