"""How what a stage does looks in the drawing of a step: colours, patterns, names, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass

from planner.report.figures import words
from planner.report.page.markup import Markup, join, tag
from planner.simulate import Event
from planner.simulate.events import ACTIVATIONS, GRADIENTS, P2P
from planner.simulate.timeline import EXCHANGE, OPTIMIZER, OVERHEAD

AFTER = {EXCHANGE: "exchange", OPTIMIZER: "update", OVERHEAD: "overhead"}
"""What comes after the passes -> how it looks."""
KINDS = {"F": "forward", "B": "backward", "I": "backward (input)", "W": "backward (weights)"}
"""Kind of pass -> what it is called."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How passes of a plan are told apart: by their chunk, and by the end from which their micro-batch came."""

    chunks: int
    """Of a stage, in one direction."""
    directions: int

    def chunk(self, event: Event) -> int | None:
        """Return the chunk of a pass; None where there is one only."""
        return event.chunk % self.chunks if self.chunks > 1 and event.chunk >= 0 else None

    def is_from_other_end(self, event: Event) -> bool:
        """Tell whether a pass, or what is sent, is of a micro-batch that came in at the last stage."""
        return event.chunk >= self.chunks

    def name(self, event: Event) -> str:
        """Return what is written into a pass."""
        chunk = self.chunk(event)
        return str(event.micro_batch) if chunk is None else f"{event.micro_batch}.{chunk}"

    def classes(self, event: Event) -> str:
        """Return the classes of the rectangle of an event."""
        if event.lane == P2P:
            return "send" if event.name == ACTIVATIONS else "send back"
        if event.micro_batch < 0:
            return AFTER[event.name]
        other = self.is_from_other_end(event) if self.directions > 1 else (self.chunk(event) or 0) % 2
        return f"pass {event.name}{int(other)}"


def legend(looks: Looks, drawn: tuple[Event, ...], said: str) -> Markup:
    """Return what the colours and patterns mean, those that are drawn, and what is `said` of the whole."""
    used, names = {looks.classes(event) for event in drawn}, {event.name for event in drawn}
    other = " from the other end" if looks.directions > 1 else " of an odd chunk"
    shown = [
        (look, f"{text}{other * int(shade)}")
        for shade in "01"
        for kind, text in KINDS.items()
        if (look := f"pass {kind}{shade}") in used
    ]
    shown += [("send", "transfer of activations")] if ACTIVATIONS in names else []
    shown += [("send back", "transfer of gradients")] if GRADIENTS in names else []
    shown += [(look, words(name)) for name, look in AFTER.items() if name in names]
    items = [
        tag(
            "li",
            tag("svg", tag("rect", width=18, height=14, class_=look), width=18, height=14, aria_hidden="true"),
            text,
        )
        for look, text in shown
    ]
    note = " Numbers are micro-batches (micro-batch.chunk)." if looks.chunks > 1 else " Numbers are micro-batches."
    return join(tag("ul", *items, class_="legend"), tag("p", said + note, class_="note"))
