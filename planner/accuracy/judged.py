"""A measured run with what is predicted of it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.accuracy.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A run, and its prediction as far as there is one."""

    run: Run
    profile: str
    """Name of the framework's profile that the prediction used; empty if there is no prediction."""
    step_time: float | None
    """[s] predicted."""
    peak_memory: float | None
    """[bytes] predicted, on the fullest device."""
    memory_limit: float | None
    """[bytes] device memory less the head-room."""
    reason: str
    """Why it cannot be judged; empty if it can."""

    @property
    def fits(self) -> bool | None:
        """Whether it is predicted to fit; None if that is not predicted."""
        if self.peak_memory is None or self.memory_limit is None:
            return None
        return self.peak_memory <= self.memory_limit
