"""What a long computation tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

UNKNOWN = float("inf")
"""[s] of what is not known, or has no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a long computation has come."""

    phase: str
    """What is being done, in a word or two."""
    left: Callable[[], int] | None = None
    """Counts the sets of plans that may still hold a better one: none when the phase ends. It takes about a ms."""
    best: float = UNKNOWN
    """[s] step time of the best plan so far."""
    bound: float = 0.0
    """[s] below which no plan's step time lies."""
    wanted: float = 0.0
    """[-] gap between the two with which the phase ends."""
    ends_in: float = UNKNOWN
    """[s] until a time limit ends the phase, if nothing else does before."""


class Reporter:
    """Is told how a computation goes, several times a second if all goes well; does nothing by default.

    What it raises ends the computation: that is how a search that nobody wants any more is given up.
    """

    def progress(self, standing: Standing) -> None:
        """Hear of a step."""


class Part(Reporter):
    """Tells of a computation inside another one."""

    def __init__(self, whole: Reporter, name: str) -> None:
        """Pass what is heard on to `whole`, as part `name` of it."""
        self._whole, self._name = whole, name

    def progress(self, standing: Standing) -> None:
        """Pass it on."""
        self._whole.progress(replace(standing, phase=f"{self._name}, {standing.phase}"))
