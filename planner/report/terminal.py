"""The one place that writes: plain text, coloured on a terminal, and readable where an encoding lacks the bars."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from planner.report.layout import EMPTY, FULL, WIDTH
from planner.report.looks import BY_TURNS, BY_TURNS_STYLE, COMMANDS, OTHER_STYLES, STYLES

_PLAIN = str.maketrans({FULL: "#", EMPTY: "."})
"""For terminals that cannot show blocks."""
_STYLES = (
    (
        r"(?m)^(cluster|model|job|plan|layout|step|proof|context|idle|cost|training|runs on|fits|search:|next:)(?= )",
        "bold",
    ),
    (r"(?m)^(ranks|memory)(?= )", "bold"),
    (r"(?m)^(where a step goes|a step, |memory, |runners-up|stage +group|what fills|what binds|why not).*$", "bold"),
    (f"{FULL}+", "cyan"),
    (f"{EMPTY}+", "bright_black"),
    (r"\btoo full\b|\bNO\b(?=:)", "bold red"),
    (r"(?m)^planner: (?:no |[^ ]+:)", "bold red"),
    (r"optimal(?=:)|within [0-9.]+%(?=:)", "bold green"),
    (r"(?m)^(search:|next:) .*$", "bright_black"),
)
"""Pattern -> style; colour only decorates, the text says everything."""
_LOOKS = STYLES | OTHER_STYLES | {BY_TURNS: BY_TURNS_STYLE}
_STRIP = re.compile(rf"(?m)^  stage \d+ *  ([{re.escape(''.join(_LOOKS))}]+)(?=  )")
"""What a stage does in a step: each character has its own style."""


def page_width() -> int:
    """Return the width [columns] of a page: the terminal's, at most 100."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


Spans = Sequence[tuple[int, int, str]]
"""(first character, the one after the last, style)."""


def write(text: str, stream: TextIO | None = None, spans: Spans = ()) -> None:
    """Write a text to `stream`, by default standard output; on a terminal `spans` of it have their own colours."""
    out = sys.stdout if stream is None else stream
    text = readable(text, getattr(out, "encoding", None) or "utf-8")
    if coloured(out):
        _write_coloured(text, out, spans)
    else:
        out.write(text)
    out.flush()


def coloured(stream: TextIO) -> bool:
    """Whether colour is wanted: on a terminal that has it, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def readable(text: str, encoding: str) -> str:
    """Return `text` in characters that `encoding` has and a terminal shows."""
    text = text.translate(COMMANDS)
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")
    return text


def _write_coloured(text: str, out: TextIO, spans: Spans) -> None:
    from rich.console import Console
    from rich.text import Text

    styled = Text(text, end="")
    for pattern, style in _STYLES:
        styled.highlight_regex(pattern, style)
    for strip in _STRIP.finditer(text):
        for run in re.finditer(r"(.)\1*", strip[1]):
            styled.stylize(_LOOKS[run[1]], strip.start(1) + run.start(), strip.start(1) + run.end())
    for start, end, style in spans:
        styled.stylize(style, start, end)
    Console(file=out, highlight=False, width=WIDTH).print(styled, soft_wrap=True)
