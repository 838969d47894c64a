"""Colours and patterns: those of Okabe and Ito, which the colour-blind can tell apart, and a texture with each."""

from __future__ import annotations

from planner.report.page.markup import Markup, tag

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Source: Okabe and Ito, "Color Universal Design" (2008); black is left to text, grey stands for it."""
LIGHT_TEXT = frozenset({"#0072B2"})
"""Colours on which white is read better than black."""
PARTS = {
    "weights": ("#0072B2", "plain"),
    "gradients": ("#56B4E9", "rise"),
    "optimizer": ("#009E73", "plain"),
    "activations": ("#E69F00", "fall"),
    "fragmentation": ("#F0E442", "dots"),
    "logits": ("#CC79A7", "plain"),
    "gathered_weights": ("#D55E00", "rise"),
    "update_temporaries": ("#D55E00", "dots"),
    "outside_allocator": ("#999999", "plain"),
}
"""Part of the memory -> its colour and texture."""
BACKWARD = {
    "B0": ("#E69F00", "fall"),
    "B1": ("#F0E442", "bars"),
    "I0": ("#E69F00", "level"),
    "I1": ("#F0E442", "level"),
    "W0": ("#009E73", "rise"),
    "W1": ("#009E73", "dots"),
}
"""Passes that are hatched -> their colours and textures."""


def definitions() -> Markup:
    """Return the patterns of passes and exchanges, to stand in the picture that uses them."""
    passes = (_pattern(f"pass-{name}", *looks) for name, looks in BACKWARD.items())
    return tag("defs", *passes, _pattern("exchange", "#CC79A7", "dots"), _pattern("back", "#D55E00", "bars"))


def part_definitions() -> Markup:
    """Return the patterns of the parts of the memory."""
    return tag("defs", *(_pattern(f"part-{name}", *looks) for name, looks in PARTS.items()))


def text_colour(colour: str) -> str:
    """Return what is read best on a colour."""
    return "#fff" if colour in LIGHT_TEXT else "#000"


def _pattern(name: str, colour: str, texture: str) -> Markup:
    marks = {
        "plain": (),
        "rise": (tag("path", d="M-2 8L8 -2M4 10L10 4", stroke="#000", stroke_opacity=0.28, stroke_width=1.6),),
        "fall": (tag("path", d="M0 0L8 8M-4 4L4 12M4 -4L12 4", stroke="#000", stroke_opacity=0.22, stroke_width=1.2),),
        "bars": (tag("path", d="M2 0V8M6 0V8", stroke="#000", stroke_opacity=0.45, stroke_width=1.2),),
        "level": (tag("path", d="M0 2H8M0 6H8", stroke="#000", stroke_opacity=0.45, stroke_width=1.2),),
        "dots": (tag("circle", cx=4, cy=4, r=1.3, fill="#000", fill_opacity=0.4),),
    }[texture]
    ground = tag("rect", width=8, height=8, fill=colour)
    return tag("pattern", ground, *marks, id=name, width=8, height=8, patternUnits="userSpaceOnUse")
